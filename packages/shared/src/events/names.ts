import type { Event } from "@tapedeck/proto/tapedeck/v1/event";

/** Outcomes by their number on the wire, as the API writes them. */
export const outcomeNames: Readonly<Record<Event["outcome"], string>> = {
  0: "",
  1: "succeeded",
  2: "failed",
  3: "canceled",
  4: "unknown",
  [-1]: "",
};

/** Where an event's time comes from, likewise. */
export const timeSourceNames: Readonly<Record<Event["time_source"], string>> = {
  0: "",
  1: "upstream",
  2: "observed",
  3: "interval",
  [-1]: "",
};
