import { timeoutSignal } from "@tapedeck/shared/sync/timers";
export type Sample = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** A service's /metrics; undefined when it cannot be reached. */
export async function readMetrics(address: string): Promise<readonly Sample[] | undefined> {
  try {
    const response = await fetch(`http://${address}/metrics`, { signal: timeoutSignal(2_000) });
    return response.ok ? parseMetrics(await response.text()) : undefined;
  } catch {
    return undefined;
  }
}

type Readiness = {
  readonly checks: Readonly<Record<string, string>>;
  readonly details?: { readonly warnings?: readonly string[] };
};

/** What stops a service from working, and its other warnings, from its /readyz; nothing when it cannot be reached. */
export type HealthReport = { readonly problems: readonly string[]; readonly warnings: readonly string[] };

/** `base`: such as http://127.0.0.1:7061 */
export async function readHealthReport(base: string): Promise<HealthReport> {
  try {
    const response = await fetch(`${base}/readyz`, { signal: timeoutSignal(5_000) });
    const { checks, details } = (await response.json()) as Readiness;
    return { problems: Object.values(checks).filter((answer) => answer !== "ok"), warnings: details?.warnings ?? [] };
  } catch {
    return { problems: [], warnings: [] };
  }
}

function parseMetrics(text: string): readonly Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, name, labels = "", value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, labels: parseLabels(labels), value: Number(value) }];
  });
}

/** The sum over all label values; undefined when there is no such metric. */
export function sumOf(samples: readonly Sample[] | undefined, name: string): number | undefined {
  const found = samples?.filter((sample) => sample.name === name) ?? [];
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

function parseLabels(text: string): Record<string, string> {
  const pairs = text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g);
  return Object.fromEntries([...pairs].map(([, name = "", value = ""]) => [name, value.replace(/\\(.)/g, "$1")]));
}
