import { ownValue } from "../own-value.ts";

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The form that `durationMs` takes, for errors. */
export const durationForm = 'a duration such as "500ms", "30s", "10m", "2h" or "30d"';

/** Undefined if the value is not a duration. */
export function durationMs(value: unknown): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(String(value));
  return match === null ? undefined : Number(match[1]) * (ownValue(unitMs, match[2] ?? "") ?? 0);
}
