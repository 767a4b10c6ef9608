import { causeGroup, explain } from "@tapedeck/explain";
import type { OperationRow } from "../../db/schema.ts";
import { text } from "../../db/text.ts";

/** Why something failed, in the columns of a row. */
export type CauseColumns = Pick<
  OperationRow,
  "cause" | "reason" | "cause_group" | "cause_file" | "cause_line" | "advice"
>;

export const noCause: CauseColumns = {
  cause: "",
  reason: "",
  cause_group: "",
  cause_file: "",
  cause_line: null,
  advice: "",
};

/** The reason of what was stopped. It is nobody's cause. */
export const cancelled = "cancelled";

export function causeColumnsOf(row: CauseColumns): CauseColumns {
  const { cause, reason, cause_group, cause_file, cause_line, advice } = row;
  return { cause, reason, cause_group, cause_file, cause_line, advice };
}

/** A line beyond it is no line to quote. */
const longest = 2_000;
const largestInt = 2 ** 31 - 1;

export function explained(given: Parameters<typeof explain>[0]): CauseColumns {
  const found = explain(given);
  if (found === undefined) return noCause;
  const { cause, reason, file, line, advice } = found;
  return {
    // Tools list errors as items.
    cause: cut(cause.trim().replace(/^[-*] +(?=\S)/, "")),
    reason: cut(reason),
    cause_group: cut(causeGroup(reason, cause)),
    cause_file: cut(file ?? ""),
    cause_line: line !== null && line <= largestInt ? line : null,
    advice: cut(advice ?? ""),
  };
}

/** "please open an issue at …" helps nobody with this failure. */
const boilerplate = /\b(?:open|file|create|report)\b.{0,20}\b(?:issue|bug)\b/i;

/** The first suggestion of the upstream that is about the failure; empty: none. */
export function adviceIn(suggestions: readonly string[]): string {
  return cut(suggestions.find((one) => one !== "" && !boilerplate.test(one)) ?? "");
}

function cut(value: string): string {
  return text(value.slice(0, longest));
}
