import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { type Offset, offsetOf } from "@tapedeck/shared/log/offset";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type Fold, fold } from "./fold.ts";
import { FoldedSession } from "./folded-session.ts";

/** A state of the size that the last event's summary says. */
const sized: Fold = fold<string>({
  version: 1,
  initial: "",
  channels: [],
  evolve: (_state, { summary }) => "x".repeat(Number(summary)),
  collections: {},
  tables: [],
  drift: () => undefined,
});

const of = { session: "01A", source: "acme/alice/shop/skaffold" };

function recorded(bytes: number, stateSize: number, index: number): RecordedEvent {
  const event = Event.fromPartial({ summary: String(stateSize), original: { bytes: Buffer.alloc(bytes) } });
  return { event, offset: offsetOf(index + 1), recordedAt: new Date(0), subject: "" };
}

/** The positions of the snapshots when the events come in batches of this size. */
function snapshotsOf(events: readonly RecordedEvent[], batch: number): readonly Offset[] {
  const positions: Offset[] = [];
  let session = new FoldedSession(sized, of, undefined);
  events.forEach((event, index) => {
    session.apply(event);
    if ((index + 1) % batch !== 0 && index + 1 < events.length) return;
    positions.push(...session.snapshots.map(({ position }) => position));
    session = new FoldedSession(sized, of, session.row());
  });
  return positions;
}

const events = (count: number, bytes: number, stateSize = 10) =>
  Array.from({ length: count }, (_, index) => recorded(bytes, stateSize, index));

it.each([
  ["a hundred small events", events(1_000, 100), 100],
  ["256 KiB of large ones", events(100, 100_000), 3],
  ["as many as are as large as a large state", events(4_000, 0, 100_000), 800],
])("takes a snapshot after %s", (_, given, stride) => {
  const positions = snapshotsOf(given, given.length);
  expect(positions.slice(0, 3)).toEqual([1, 2, 3].map((n) => offsetOf(n * stride)).slice(0, positions.length));
  expect(positions.length).toBe(Math.floor(given.length / stride));
});

it("takes the same snapshots however the events are cut into batches", () => {
  const event = fc.tuple(fc.oneof(fc.nat(2_000), fc.nat(150_000)), fc.oneof(fc.nat(100), fc.nat(50_000)));
  fc.assert(
    fc.property(fc.array(event, { maxLength: 600, size: "max" }), fc.integer({ min: 1, max: 300 }), (sizes, batch) => {
      const given = sizes.map(([bytes, stateSize], index) => recorded(bytes, stateSize, index));
      expect(snapshotsOf(given, batch)).toEqual(snapshotsOf(given, given.length));
    }),
    { numRuns: 20 },
  );
});
