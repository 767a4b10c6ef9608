import type { Cause } from "@tapedeck/proto/tapedeck/v1/lists";
import type { CauseColumns } from "../views/causes/cause-columns.ts";

/** The step that failed first in a loop. */
export type FailedStep = { readonly phase: string; readonly subject: string; readonly tries: number };

const noStep: FailedStep = { phase: "", subject: "", tries: 1 };

/** The cause in a row; undefined where nothing failed or nothing is known. */
export function causeOf(row: CauseColumns, { phase, subject, tries }: FailedStep = noStep): Cause | undefined {
  const { cause: text, reason, cause_group: group, cause_file: file, cause_line, advice } = row;
  if (reason === "") return undefined;
  return { text, reason, group, file, line: cause_line ?? undefined, advice, phase, subject, tries };
}
