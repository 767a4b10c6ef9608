import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Api, RecordedSession } from "./recorded-session.ts";

/** One entry of a session's log, with what a cut needs to know. */
export type Entry = { readonly event: Event; readonly at: number } & (
  | { readonly api: Api; readonly index: number }
  | { readonly api: "tapedeck" }
);

/** v1 and v2 by their times, each kept in its order, and the control calls where they were made and answered. */
export function inOrder(session: RecordedSession): readonly Entry[] {
  const log = merged(session);
  const after = (counts: Readonly<Record<Api, number>>) =>
    log.findLastIndex((entry) => entry.api !== "tapedeck" && entry.index < counts[entry.api]) + 1;
  const inserted = session.calls.flatMap(({ at, requested, answered, before, after: seenAfter }) => [
    { place: after(before), entry: { event: requested, at, api: "tapedeck" as const } },
    { place: after(seenAfter), entry: { event: answered, at, api: "tapedeck" as const } },
  ]);
  const described: Entry = { event: session.described, at: 0, api: "tapedeck" };
  const here = (place: number) => inserted.filter((one) => one.place === place).map((one) => one.entry);
  return [described, ...log.flatMap((entry, index) => [...here(index), entry]), ...here(log.length)];
}

function merged({ v1, v2 }: RecordedSession): readonly Entry[] {
  const entries = (api: Api, events: readonly Event[]): Entry[] => {
    let latest = 0;
    return events.map((event, index) => {
      // Not earlier than what comes before it in its own stream, so that sorting keeps that order.
      latest = Math.max(latest, milliseconds(event));
      return { event, at: latest, api, index };
    });
  };
  return [...entries("v1", v1), ...entries("v2", v2)].sort((a, b) => a.at - b.at);
}

function milliseconds({ occurred_at }: Event): number {
  return Number(occurred_at?.seconds ?? 0n) * 1000 + (occurred_at?.nanos ?? 0) / 1e6;
}
