import { causeGroup, explain } from "@tapedeck/explain";
import type { Failure, Found, SideSummary, SummaryStep } from "../side-summary.ts";

// Sides of a comparison that a test plants a cause in.

export const at = (value: string): Found => ({ value, position: "383600-t3k9x2" });
export const named = (values: Readonly<Record<string, string>>): ReadonlyMap<string, Found> =>
  new Map(Object.entries(values).map(([name, value]) => [name, at(value)]));

export const step = (kind: string, subject: string, more: Partial<SummaryStep> = {}): SummaryStep => ({
  kind,
  subject,
  outcome: "succeeded",
  durationMs: 1_000,
  isCached: false,
  platform: "",
  position: "383600-t3k9x2",
  usualMs: 1_000,
  ...(kind === "build" && { platform: "linux/amd64" }),
  ...more,
});

type Planted = Partial<Omit<Failure, "output">> & {
  /** What the step printed. */
  readonly log?: readonly Found[];
};

export const failed = (phase: string, text: string, { log = [], ...more }: Planted = {}): Failure => {
  const cause = causeOf(phase, text, log);
  return {
    phase,
    subject: "",
    code: "UNKNOWN_ERROR",
    text,
    cause,
    suggestions: [],
    position: "383600-t3k9x2",
    tries: 1,
    output: log.map((line) => ({ ...line, isCause: line.value === cause?.text })),
    ...more,
  };
};

function causeOf(step: string, summary: string, log: readonly Found[]): Failure["cause"] {
  const found = explain({ output: log.map(({ value }) => value).join("\n"), summary, step });
  if (found === undefined) return undefined;
  const { cause: text, reason, file, line, advice } = found;
  const group = causeGroup(reason, text);
  return {
    text,
    reason,
    group,
    file: file ?? "",
    line: line ?? undefined,
    advice: advice ?? "",
    phase: "",
    subject: "",
    tries: 1,
  };
}

/** The steps up to the one that failed. */
export function broken(summary: SideSummary, failure: Failure, more: Partial<SideSummary> = {}): SideSummary {
  const index = summary.steps.findIndex(({ kind, subject }) => kind === failure.phase && subject === failure.subject);
  const steps = summary.steps
    .slice(0, index + 1)
    .map((one, place): SummaryStep => (place === index ? { ...one, outcome: "failed" } : one));
  const isBeforeCheck = ["build", "deploy"].includes(failure.phase);
  return {
    ...summary,
    outcome: "failed",
    failure,
    steps,
    ports: new Map(),
    ...(isBeforeCheck && { resources: new Map() }),
    ...more,
  };
}
