import type { Answer } from "./answer.ts";
import { outline } from "./outline.ts";

/** A row in each line, as JSON: values of the first ones give way to their size where a row would not fit. */
export function addRows(answer: Answer, rows: readonly unknown[], rest: (count: number) => string): void {
  // One byte is the end of a line.
  const outlines = rows.map((row) => outline(row, answer.left - 1));
  const shown = answer.section({ entries: outlines.map(({ json }) => json), rest, isMain: true });
  if (outlines.slice(0, shown).some(({ isWhole }) => !isWhole))
    answer.leaveOut("parts of values, marked by …. Ask with more `tokens`, or for fewer of them.");
}
