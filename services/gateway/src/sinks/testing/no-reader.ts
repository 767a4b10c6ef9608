import type { FormatOpening, FormatReader } from "../format/format.ts";

const refuse = (): never => {
  throw new Error("the format reads the log");
};

/** For a format that needs nothing but the events. */
export const noReader: FormatReader = {
  history: refuse,
  historyBatches: refuse,
  lastMatch: refuse,
  now: refuse,
  read: refuse,
};

/** A first pass, in which no cause is known. */
export const firstOpening: FormatOpening = {
  memory: undefined,
  causeOf: async () => undefined,
  intervalMs: 60_000,
  lateMs: 5_000,
};
