import { searched } from "@tapedeck/shared/testing/searches";

/** A colour scheme, and the width of the window in pixels. */
export type Design = readonly ["light" | "dark", 390 | 1440];

export const [lightDesktop, darkPhone]: readonly [Design, Design] = [
  ["light", 1440],
  ["dark", 390],
];
const all: Design[] = [lightDesktop, darkPhone, ["dark", 1440], ["light", 390]];

/** All designs at length, the given ones else. */
export const designs = (...short: Design[]): Design[] => searched({ short, long: all });
