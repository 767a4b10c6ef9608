import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { expect } from "vitest";
import { kinds } from "../../harness/rkt-harness.ts";
import { holes, kindsOf, sessionsOf } from "../recorded-events.ts";
import { knowableFacts } from "./held-back.ts";
import { type History, type RecordedFact, recordedFacts } from "./recorded-facts.ts";

/**
 * Compares the record of a host while ingest was killed with the undisturbed one, for each pod and each image, as far
 * as an ingest could know it (see `knowableFacts`). Ignores when it was observed and recorded, except that the interval
 * may only be wider; it is counted in rows of the recording, since the two runs had different times. The order in a
 * channel counts only for resources listed and seen in the same row: a fact that one answer alone does not prove is
 * recorded with the next one, which is a later one if the recorder was killed with the first (a disappearance that
 * could not be inspected, a preparation that seems given up).
 */
export function sameHistory(calm: History, wild: History): void {
  const { name } = wild.host;
  expect(holes(wild.events), name).toEqual([]);
  expect(sessionsOf(wild.events), name).toHaveLength(1);
  const sessions = new Set(wild.events.flatMap(({ event: { session } }) => (session === "" ? [] : [session])));
  expect(sessions.size, name).toBe(1);
  for (const kind of ["session.ended", "upstream.unreadable"])
    expect(wild.events.filter(({ event }) => event.kind === kind)).toEqual([]);
  for (const kind of kinds) {
    const after = recordedFacts(wild, kind);
    const before = knowableFacts(recordedFacts(calm, kind), after, wild.host);
    const title = `${name}: ${kind}`;
    expect(itemsOf(after), title).toEqual(itemsOf(before));
    for (const [item, pairs] of paired(before, after)) {
      for (const [one, other] of pairs) {
        const what = `${title}: ${other.summary} (${item}), after row`;
        expect(other.seen, `${title}: ${other.summary}, seen in row`).toBeGreaterThanOrEqual(one.seen);
        if (one.after === undefined || other.after === undefined) expect(other.after, what).toBe(one.after);
        else expect(other.after, what).toBeLessThanOrEqual(one.after);
      }
    }
    const same = new Set([...paired(before, after).values()].flat().filter(isObservedAlike).flat());
    const ordered = (facts: readonly RecordedFact[]) =>
      facts.filter((one) => same.has(one)).map(({ lasting }) => lasting);
    expect(ordered(after), `${title}: order`).toEqual(ordered(before));
  }
}

/** The recorded gaps by channel. */
export function gapsIn(events: readonly RecordedEvent[]): { readonly subject: string; readonly inferred: boolean }[] {
  return events.flatMap(({ event }) => {
    if (event.kind !== "session.gap") return [];
    expect(event.channel).toBe("tapedeck");
    return [{ subject: event.subject, inferred: event.inferred }];
  });
}

export function connectionsIn(events: readonly RecordedEvent[]): number {
  return kindsOf(events).filter((kind) => kind === "upstream.connected").length;
}

function isObservedAlike([one, other]: readonly [RecordedFact, RecordedFact]): boolean {
  return one.isListed && one.seen === other.seen;
}

/** Sorts by the resources' names, so that only the order within each one counts. */
function itemsOf(facts: readonly RecordedFact[]): readonly (readonly [string, readonly object[]])[] {
  const by = Map.groupBy(facts, ({ item }) => item);
  return [...by.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([item, all]) => [item, all.map(({ lasting }) => lasting)]);
}

function paired(
  before: readonly RecordedFact[],
  after: readonly RecordedFact[],
): Map<string, readonly (readonly [RecordedFact, RecordedFact])[]> {
  const others = Map.groupBy(after, ({ item }) => item);
  const pairs = [...Map.groupBy(before, ({ item }) => item)].map(([item, all]) => {
    const same = others.get(item) ?? [];
    return [item, all.flatMap((one, index) => (same[index] ? [[one, same[index]] as const] : []))] as const;
  });
  return new Map(pairs);
}
