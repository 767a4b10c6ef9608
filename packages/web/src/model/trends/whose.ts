import type { Sight } from "../own.ts";
import type { ChartName, Choice } from "./choice.ts";

export type Whose = "team" | "own";

/** What narrows figures to somebody's. */
export type Filters = Pick<Choice, "developers" | "labels" | "by">;

/**
 * Says whose figures a chart has for a visitor from whom other developers are hidden. A developer, a label, or the text of a
 * cause can say whose it is: figures by these are the visitor's own. Undefined: nobody is hidden.
 */
export function whoseFigures(chart: ChartName, filters: Filters, { seesOnlyOwn }: Sight = {}): Whose | undefined {
  if (seesOnlyOwn === undefined) return undefined;
  const isOwn = chart === "failures" || (chart === "sides" && filters.by === "developer");
  return isOwn || isNarrowed(filters) ? "own" : "team";
}

/** Says which figures on Trends are the team's. Undefined: nobody is hidden. */
export function whoseText(filters: Filters, { seesOnlyOwn, developer }: Sight = {}): string | undefined {
  if (seesOnlyOwn === undefined) return undefined;
  const own =
    developer === undefined ? "your own, of which there are none: your token names no developer" : `${developer}'s`;
  if (isNarrowed(filters)) {
    return `Developers are hidden from each other here. Filtered by developer or label, all figures are ${own}.`;
  }
  return `Developers are hidden from each other here. Figures are the team's sums; failures by cause, branches, and the loops behind a figure are ${own}.`;
}

function isNarrowed({ developers, labels }: Filters): boolean {
  return developers.length + labels.length > 0;
}
