import type { Explanation, StepOutput } from "./explanation.ts";

export type { Explanation, StepOutput } from "./explanation.ts";
export { causeGroup } from "./group.ts";

/** Why a step failed, concluded from what it printed. Undefined where nothing failed. */
export function explain({ output, summary = "" }: StepOutput): Explanation | undefined {
  const lines = output.split("\n").filter((line) => /\b(?:error|fatal|failed)\b/i.test(line));
  const cause = lines[0] ?? summary;
  if (cause === "") return undefined;
  const place = /^\s*(?<file>[\w./-]+):(?<line>\d+)/.exec(cause)?.groups;
  return {
    cause,
    reason: "other",
    file: place?.file ?? null,
    line: place?.line === undefined ? null : Number(place.line),
    advice: null,
  };
}
