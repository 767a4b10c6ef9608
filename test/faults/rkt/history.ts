import type { InventoryKind } from "@tapedeck/fakes/rkt/recording";
import { type Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { expect } from "vitest";
import { type Host, kinds } from "../../bench/rkt-bench.ts";
import { holes, kindsOf, sessionsOf } from "../recorded-events.ts";

type RecordedFact = {
  /** The pod or image; "" for a description of the host. */
  readonly item: string;
  /** The part that must be the same regardless of kills. */
  readonly lasting: object;
  readonly summary: string;
  /** Rows of the recording: observed after the first, and at the second. */
  readonly after: number | undefined;
  readonly seen: number;
  /** Observed in an answer, not inferred from its absence. */
  readonly isListed: boolean;
};

export type History = { readonly events: readonly RecordedEvent[]; readonly host: Host };

/**
 * Holds what was recorded of a host while ingest was killed to what was recorded undisturbed, for each pod and each image.
 * Aside: when it was observed and recorded, where the interval may only be wider; counted in rows of the recording, since
 * the two runs had different times. And in the order of a channel only what was listed, and seen in the same row: what one
 * answer alone does not prove is told with the next one, which is a later one if the recorder was killed with the first
 * (a disappearance that nobody could ask about, a preparation that seems given up).
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
    const [before, after] = [toldOf(calm, kind), toldOf(wild, kind)];
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

/** Sorted by the resources' names, so that only the order within each one counts. */
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

function toldOf({ events, host }: History, kind: InventoryKind): readonly RecordedFact[] {
  const own = wholeDescriptions(events.flatMap(({ event }) => (event.channel === kind ? [event] : [])));
  const listed = new Set(own.filter(({ original }) => original !== undefined).map(frameOf));
  return own.map((event) => ({
    item: event.subject.split("/")[0] ?? "",
    lasting: lastingOf(event),
    summary: event.summary,
    after: event.not_before && host.rowAt(kind, event.not_before),
    seen: event.observed_at === undefined ? 0 : host.rowAt(kind, event.observed_at),
    isListed: listed.has(frameOf(event)),
  }));
}

function frameOf({ session, frame_ordinal }: Event): string {
  return `${session}.${frame_ordinal}`;
}

function lastingOf(event: Event): object {
  const { kind, subject, part, outcome, error, summary, time_source, occurred_at, inferred, detail } = event;
  const { operation, redacted, original, observed_at } = event;
  const isObserved =
    time_source === TimeSource.TIME_SOURCE_OBSERVED ||
    (occurred_at?.seconds === observed_at?.seconds && occurred_at?.nanos === observed_at?.nanos);
  return {
    ...{ kind, subject, part, outcome, error, summary, time_source, inferred, detail, operation, redacted },
    occurred_at: isObserved ? "observed" : occurred_at,
    original: original && { type: original.type, bytes: original.bytes.toString("base64") },
  };
}

/** A description that a kill cut off comes to nothing: all of it is given again. */
function wholeDescriptions(events: readonly Event[]): readonly Event[] {
  const torn = new Set<Event>();
  let parts: Event[] = [];
  for (const event of events) {
    if (event.detail?.$case !== "host") continue;
    const { part, parts: all } = event.detail.value;
    if (part === 0) {
      for (const one of parts) torn.add(one);
      parts = [];
    }
    parts.push(event);
    if (parts.length === all) parts = [];
  }
  for (const one of parts) torn.add(one);
  return events.filter((event) => !torn.has(event));
}
