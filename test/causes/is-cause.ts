import type { PlantedCause } from "./planted-cause.ts";

type Difference = { kind: string; subject: string; text: string; left: string | null; right: string | null };
type Side = {
  outcome: string;
  failure: { error: string; cause: { text: string } | null; output: { text: string }[] } | null;
};
/** An answer of the API. */
export type Comparison = { left: Side; right: Side | null; differences: Difference[] };

/** Whether a difference is the cause. A failure includes the whole error and the lines that are shown with it. */
export function isCause(
  difference: Difference,
  { left }: Comparison,
  { kinds, subject, text }: PlantedCause["cause"],
): boolean {
  if (!kinds.includes(difference.kind)) return false;
  const { error = "", cause, output = [] } = (difference.kind === "failure" && left.failure) || {};
  const shown = [error, cause?.text ?? "", ...output.map((line) => line.text)];
  const words = [difference.subject, difference.text, difference.left, difference.right, ...shown].join("\n");
  return (subject?.test(difference.subject) ?? true) && (text?.test(words) ?? true);
}
