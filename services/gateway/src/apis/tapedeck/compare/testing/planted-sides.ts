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

export const failed = (phase: string, text: string, more: Partial<Failure> = {}): Failure => ({
  phase,
  subject: "",
  code: "UNKNOWN_ERROR",
  text,
  suggestions: [],
  position: "383600-t3k9x2",
  tries: 1,
  log: [],
  ...more,
});

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
