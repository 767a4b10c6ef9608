/** Why something failed, as @tapedeck/explain concludes from its output. Empty: nothing failed, or nothing is known. */
export const causeColumns = `
    -- The line that says why.
    cause text not null default '',
    -- A short class of causes. "cancelled" without a cause: it was stopped.
    reason text not null default '',
    -- The reason with the cause, without what differs from run to run.
    cause_group text not null default '',
    cause_file text not null default '',
    cause_line int,
    -- What the tool recommends.
    advice text not null default ''`;

export const causeNames = ["cause", "reason", "cause_group", "cause_file", "cause_line", "advice"] as const;

/** The columns of a row, for a view. */
export function causesOf(row: string): string {
  return causeNames.map((name) => `${row}.${name}`).join(", ");
}
