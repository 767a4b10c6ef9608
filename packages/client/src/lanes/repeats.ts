import { isSame, type Step, stepText } from "./step.ts";

/** Steps of the same work, one after the other: a sync that is tried again. */
export type Repeated = { readonly steps: readonly Step[]; readonly text: string };

/** Repeats in one row each, in the order in which they first began. What runs at the same time keeps its own row. */
export function repeatsOf(steps: readonly Step[]): readonly Repeated[] {
  const rows: Step[][] = [];
  for (const step of steps) {
    const row = rows.find((known) => {
      const last = known.at(-1);
      return last !== undefined && isSame(last, step) && last.endedAt !== undefined && last.endedAt <= step.startedAt;
    });
    if (row === undefined) rows.push([step]);
    else row.push(step);
  }
  return rows.map((row) => ({ steps: row, text: timesText(row) }));
}

/** "sync web ×4", "deploy" */
export function timesText(repeats: readonly Step[]): string {
  const [first] = repeats;
  if (first === undefined) return "";
  return repeats.length > 1 ? `${stepText(first)} ×${repeats.length}` : stepText(first);
}
