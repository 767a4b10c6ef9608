import { HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { Resources } from "@tapedeck/proto/tapedeck/v1/observation";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it } from "vitest";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import { described, fact, frame, gap, unreadable } from "../../inventory/testing/outcome-fields.ts";
import {
  basis,
  box,
  comparedResources,
  type Entry,
  everyKind,
  framesOf,
  intervalsOf,
  playResources,
  type ResourcePlay,
  readBack,
  runner,
  target,
} from "../testing/resources-play.ts";

/** What a new recorder knows of what is in the log. */
function resumed(record: readonly ObservationOutcome[], describeAfter = 1_000): ResourcePlay {
  const harness = playResources({ describeAfter });
  for (const event of readBack(record)) harness.watcher.resume(event);
  harness.watcher.connected();
  return harness;
}

const broken: Entry = ["w1", Buffer.from("\n\xff", "latin1")];

function descriptions(record: readonly ObservationOutcome[]) {
  return framesOf(record).flatMap(({ facts: [{ kind, detail, notBefore }], original }) => {
    if (kind !== "inventory.described" || detail?.$case !== "host") return [];
    const { kinds } = Resources.decode(original?.bytes ?? Buffer.alloc(0));
    const listed = kinds.map(({ kind, entries }) => [kind, ...entries.map(({ id }) => id)].join(" "));
    return [{ ...detail.value, listed, after: notBefore && msOfTimestamp(notBefore) }];
  });
}

const gaps = (record: readonly ObservationOutcome[]) =>
  record.flatMap((seen) =>
    seen.what === "gap" ? [[seen.reason, seen.after && msOfTimestamp(seen.after), msOfTimestamp(seen.until)]] : [],
  );

describe("a description", () => {
  it("names kinds of which there is nothing, and comes anew with a kind that is polled for the first time", () => {
    const harness = playResources();
    expect(harness.observation(1_000, { target: [], project: [] })).toEqual([described]);
    expect(harness.observation(2_000, { target: [target("w1")], box: [box("x1"), box("x2")] })).toEqual([
      frame(fact("target.added", "w1")),
      described,
    ]);
    expect(harness.observation(3_000, { project: [], box: [box("x2")] })).toEqual([frame(fact("box.removed", "x1"))]);
    expect(descriptions(harness.record)).toMatchObject([
      { listed: ["target", "project"], entries: 0, parts: 1, after: undefined },
      { listed: ["target w1", "project", "box x1 x2"], entries: 3, parts: 1, after: 1_000 },
    ]);
    expect(intervalsOf(harness.record).at(-1)).toEqual([2_000, 3_000]);
  });

  it("takes parts of at most 512 KiB, and one of its own for what is larger", () => {
    const harness = playResources();
    const sized = (id: string, kib: number) => box(id, { directory: "x".repeat(kib * 1024) });
    const boxes = [sized("a", 200), sized("b", 300), sized("c", 20), sized("d", 600), sized("e", 1)];
    harness.observation(1_000, { ...everyKind, target: [target("w1")], box: boxes });
    expect(
      descriptions(harness.record).map(({ part, parts, entries, listed }) => [part, parts, entries, listed]),
    ).toEqual([
      [0, 4, 6, ["target w1", "project", "basis", "box a b"]],
      [1, 4, 6, ["box c"]],
      [2, 4, 6, ["box d"]],
      [3, 4, 6, ["box e", "runner"]],
    ]);
    const later = resumed(harness.record);
    expect(later.observation(2_000, { ...everyKind, target: [target("w1")], box: boxes })).toEqual([gap]);
    expect(later.observation(3_000, { box: boxes.slice(1) })).toEqual([frame(fact("box.removed", "a"))]);
  });

  it("comes again at the end of the observation that reached so many events", () => {
    const harness = playResources({ describeAfter: 3 });
    harness.observation(1_000, { ...everyKind, basis: [basis("b1")] });
    expect(harness.observation(2_000, { target: [target("w1"), target("w2")] })).toEqual([
      frame(fact("target.added", "w1")),
      frame(fact("target.added", "w2")),
    ]);
    expect(harness.observation(3_000, { target: [target("w2"), target("w3")] })).toEqual([
      frame(fact("target.removed", "w1")),
      frame(fact("target.added", "w3")),
      described,
    ]);
    expect(descriptions(harness.record)[1]).toMatchObject({
      ...HostDetail.create({ parts: 1, entries: 3 }),
      listed: ["target w2 w3", "project", "basis b1", "box", "runner"],
      after: 1_000,
    });
    const later = resumed(harness.record, 3);
    later.observation(4_000, { ...everyKind, target: [target("w2"), target("w3")], runner: [runner("r1")] });
    expect(comparedResources(later.record)).toEqual([
      gap,
      frame(fact("basis.removed", "b1")),
      frame(fact("runner.added", "r1")),
    ]);
    // The description says of each kind what was so when it was polled last, which was for some after that moment.
    expect(intervalsOf(later.record)).toEqual([
      [1_000, 4_000],
      [1_000, 4_000],
    ]);
  });

  it("counts what could not be read when it was made", () => {
    const harness = playResources({ describeAfter: 2 });
    expect(harness.observation(1_000, { target: [broken] })).toEqual([described, unreadable]);
    expect(harness.observation(2_000, { target: [broken, target("w2")] })).toEqual([
      frame(fact("target.added", "w2")),
      described,
    ]);
    const later = resumed(framesOf(harness.record).slice(0, 2), 2);
    expect(later.observation(2_000, { target: [broken, target("w2")] })).toEqual([
      gap,
      frame(fact("target.added", "w2")),
      described,
    ]);
  });
});

describe("a recorder that was killed", () => {
  const before = { ...everyKind, target: [target("w1"), target("w2")], box: [box("x1")] };
  const after = { target: [target("w2", { uuid: "u" }), target("w3")], box: [box("x1"), box("x2")] };
  const reports = [
    frame(fact("target.removed", "w1")),
    frame(fact("target.changed", "w2", { changed: ["uuid"] })),
    frame(fact("target.added", "w3")),
    frame(fact("box.added", "x2")),
  ];

  it.each([0, 1, 2, 3, 4])("emits the rest of an observation of which %i events are in the log", (recorded) => {
    const harness = playResources();
    harness.observation(1_000, before);
    harness.observation(2_000, after);
    const later = resumed(harness.record.slice(0, 1 + recorded));
    expect(later.observation(2_000, after)).toEqual([gap, ...reports.slice(recorded)]);
    expect(intervalsOf(later.record)).toEqual(reports.slice(recorded).map(() => [1_000, 2_000]));
    expect(later.observation(3_000, after)).toEqual([]);
  });

  it("takes no part for the whole of a description", () => {
    const harness = playResources();
    const large = [box("a", { directory: "x".repeat(600_000) }), box("b", { directory: "x".repeat(600_000) })];
    harness.observation(1_000, { box: large });
    expect(framesOf(harness.record)).toHaveLength(2);
    // The reader of the log gives no description that is not complete.
    expect(resumed([]).observation(1_000, { box: large })).toEqual([described, described]);
  });

  it("emits what can't be read once, also if it was so at first", () => {
    const harness = playResources();
    const observation = { target: [broken] };
    expect(harness.observation(1_000, observation)).toEqual([described, unreadable]);
    expect(resumed(harness.record.slice(0, 1)).observation(1_000, observation)).toEqual([gap, unreadable]);
    expect(resumed(harness.record).observation(1_000, observation)).toEqual([gap]);
  });

  it("knows what a target replaces from the log", () => {
    const harness = playResources();
    harness.observation(1_000, { target: [target("1", { name: "web" })] });
    harness.observation(2_000, { target: [] });
    const later = resumed(harness.record);
    later.observation(3_000, { target: [target("2", { name: "web" })] });
    const [{ facts } = { facts: [undefined] }] = framesOf(later.record);
    expect(facts[0]?.detail).toMatchObject({ value: { id: "2", replaces: "1" } });
  });
});

describe("a time in which nobody polled", () => {
  it("is a gap until the next whole observation of the connection, and `same` says nothing before that", () => {
    const harness = playResources();
    harness.watcher.connected();
    harness.observation(1_000, { ...everyKind, target: [target("w1")] });
    harness.observation(2_000, { target: "same" });
    harness.watcher.connected();
    expect(harness.observation(3_000, { target: "same" })).toEqual([]);
    expect(harness.observation(4_000, { ...everyKind, target: [target("w2")] })).toEqual([
      gap,
      frame(fact("target.removed", "w1")),
      frame(fact("target.added", "w2")),
    ]);
    expect(gaps(harness.record)).toEqual([["the server's resources were not observed", 1_000, 4_000]]);
    expect(intervalsOf(harness.record).slice(1)).toEqual([
      [2_000, 4_000],
      [2_000, 4_000],
    ]);
    expect(harness.observation(5_000, { target: "same", box: "same" })).toEqual([]);
  });

  it("is a gap of the kind that the failure names, else of all", () => {
    const harness = playResources();
    expect(harness.failed(500, "box: no")).toEqual([]);
    harness.observation(1_000, everyKind);
    harness.observation(2_000, { target: [], box: [] });
    expect(harness.failed(3_000, "box: deadline exceeded")).toEqual([]);
    expect(harness.failed(3_500, "box: again")).toEqual([]);
    expect(harness.observation(4_000, { target: [] })).toEqual([]);
    expect(harness.observation(5_000, { box: "same", target: "same" })).toEqual([gap]);
    expect(harness.failed(6_000, "")).toEqual([]);
    expect(harness.observation(7_000, { target: [] })).toEqual([gap]);
    expect(harness.observation(8_000, { ...everyKind, runner: [runner("r1")] })).toEqual([
      gap,
      frame(fact("runner.added", "r1")),
    ]);
    expect(gaps(harness.record)).toEqual([
      ["the boxes could not be observed: deadline exceeded", 2_000, 5_000],
      ["the resources could not be observed: code 4", 5_000, 7_000],
      ["the resources could not be observed: code 4", 1_000, 8_000],
    ]);
    expect(intervalsOf(harness.record).at(-1)).toEqual([1_000, 8_000]);
  });
});
