import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Cursor } from "@tapedeck/shared/log/log";
import { sourceName } from "@tapedeck/shared/source";
import { expect, it } from "vitest";
import { Numbering, raised } from "../record/frames/numbering.ts";
import { rangesOf, without } from "../record/journal/ranges.ts";
import { lostFromLog } from "../record/own-facts/gap-facts.ts";
import { sessionErased, sessionStarted } from "../record/own-facts/session-facts.ts";
import { sourceCheckpoint, sourceErased } from "../record/own-facts/source-facts.ts";
import { type ScannedMessage, SourceHoles } from "./holes.ts";

const source = sourceName({ workspace: "w", developer: "d", project: "p", upstream: "skaffold" });
const timestamp = { seconds: 1n, nanos: 0 };
const dayMs = 86_400_000;

/** Numbers events as record does, into a log that the test takes messages from. */
function scenario(textTtl?: number, from?: Cursor) {
  const life = textTtl === undefined ? undefined : { textTtl, channels: ["v2"] };
  const numbers = new Numbering(source, from, life);
  const log: ScannedMessage[] = [];
  const add = (numbered: ReturnType<typeof numbers.frame>) => {
    for (const { event, written } of numbered) {
      const { channel, kind } = event;
      const speaks = channel === "tapedeck" && /^(session\.|upstream\.|source\.erased)/.test(kind);
      const expires = written.ttlSeconds !== undefined;
      const seq = (log.at(-1)?.seq ?? 0) + 1;
      const counts = { [channel]: 1 };
      log.push({ seq, recordedAtMs: seq, expires, cursor: written.cursor, counts, events: speaks ? [event] : [] });
    }
  };
  return {
    log,
    numbers,
    begin(session: string) {
      numbers.begin(session);
      add([numbers.own(session, sessionStarted({ labels: {}, redact: "on" }), { observedAt: timestamp })]);
    },
    fact: () =>
      add(numbers.frame("v2", [{ kind: "build.started", summary: "" }], undefined, { observedAt: timestamp })),
    text: () => add(numbers.frame("v2", [{ kind: "log.written", summary: "" }], undefined, { observedAt: timestamp })),
    own: (session: string, fact: Parameters<typeof numbers.own>[1]) =>
      add([numbers.own(session, fact, { observedAt: timestamp })]),
  };
}

function holesIn(log: readonly ScannedMessage[], { firstSeq = 1, nowMs = (): number => dayMs, end = log.at(-1) } = {}) {
  const holes = new SourceHoles({ source, nowMs });
  for (const seen of log) holes.add(seen);
  if (end !== undefined) holes.end({ epoch: "e", seq: end.seq, cursor: end.cursor });
  return holes
    .holes(firstSeq)
    .map(({ after, before, missing, others }) => [
      after,
      before,
      ...missing.map(({ channel, first, last, events }) => `${channel} ${first}-${last}: ${events}`),
      ...(others > 0 ? [`others: ${others}`] : []),
    ]);
}

const but = (log: readonly ScannedMessage[], ...removed: readonly number[]) =>
  log.filter(({ seq }) => !removed.includes(seq));

/** The same events in fewer messages; each begins with one of these, and has the cursor of its last event. */
function inBatches(log: readonly ScannedMessage[], ...firsts: readonly number[]): readonly ScannedMessage[] {
  const batches: ScannedMessage[] = [];
  for (const { seq, counts, events = [], ...seen } of log) {
    const before = firsts.includes(seq) ? undefined : batches.pop();
    const total = { ...before?.counts };
    for (const [channel, count] of Object.entries(counts)) total[channel] = (total[channel] ?? 0) + count;
    batches.push({ ...seen, seq: before?.seq ?? seq, counts: total, events: [...(before?.events ?? []), ...events] });
  }
  return batches;
}

/** 1 start A, 2–4 facts, 5 start B, 6–7 facts. */
function twoSessions() {
  const script = scenario();
  script.begin("A");
  for (let i = 0; i < 3; i++) script.fact();
  script.begin("B");
  for (let i = 0; i < 2; i++) script.fact();
  return script;
}

it("nothing is missing of a log that is whole", () => {
  expect(holesIn(twoSessions().log)).toEqual([]);
});

it.each<[string, readonly number[], unknown[]]>([
  ["in the middle", [3], [[2, 4, "v2 2-2: 1"]]],
  ["at the beginning", [1, 2], [[undefined, 3, "tapedeck 1-1: 1", "v2 1-1: 1"]]],
  ["a session's start", [5], [[4, 6, "tapedeck 2-2: 1"]]],
  ["over two sessions", [4, 5, 6], [[3, 7, "tapedeck 2-2: 1", "v2 1-1: 1", "others: 1"]]],
  ["at the end", [6, 7], [[5, undefined, "v2 1-2: 2"]]],
])("a loss %s is found", (_, removed, holes) => {
  const { log } = twoSessions();
  expect(holesIn(but(log, ...removed), { end: log.at(-1) })).toEqual(holes);
});

it.each<[string, readonly number[], unknown[]]>([
  ["in the middle", [2], [[1, 4, "v2 1-2: 2"]]],
  ["over two sessions", [2, 4, 5], [[1, 6, "tapedeck 2-2: 1", "others: 3"]]],
  ["at the end", [6], [[5, undefined, "v2 1-2: 2"]]],
])("a message with several events that is lost %s is found with all of them", (_, removed, holes) => {
  const { log } = twoSessions();
  const batches = inBatches(log, 1, 2, 4, 5, 6);
  expect(holesIn(batches)).toEqual([]);
  expect(holesIn(but(batches, ...removed), { end: log.at(-1) })).toEqual(holes);
});

it("text that may have expired is counted in messages of several events", () => {
  const script = scenario(60);
  script.begin("A");
  script.fact(); // 2
  for (let i = 0; i < 3; i++) script.text(); // 3–5
  script.fact(); // 6
  script.fact();
  for (let i = 0; i < 2; i++) script.text(); // 8–9
  script.fact();
  const batches = inBatches(script.log, 1, 2, 3, 6, 8, 10);
  expect(holesIn(batches)).toEqual([]);
  expect(holesIn(but(batches, 3))).toEqual([]);
  expect(holesIn(but(batches, 3, 8))).toEqual([]);
  expect(holesIn(but(batches, 3, 6))).toEqual([[2, 8, "v2 2-6: 2"]]);
  expect(holesIn(but(batches, 3), { nowMs: () => -1_000 })).toEqual([[2, 6, "v2 2-4: 3"]]);
});

it("events that were dropped from the log's beginning are nobody's loss", () => {
  const { log } = twoSessions();
  expect(holesIn(but(log, 1, 2), { firstSeq: 3 })).toEqual([]);
  expect(holesIn(but(log, 1, 2, 6), { firstSeq: 3 })).toEqual([[5, 7, "v2 1-1: 1"]]);
});

it("events that are dropped while the log is read are nobody's loss, also of a session that goes on later", () => {
  const { log } = twoSessions();
  // 1 was read; 4 is the first one when 2 is asked for.
  expect(holesIn(but(log, 2, 3), { firstSeq: 4 })).toEqual([]);
  expect(holesIn(but(log, 2, 3, 6), { firstSeq: 4 })).toEqual([[5, 7, "v2 1-1: 1"]]);
  const script = twoSessions();
  script.numbers.continueSession("A", { ordinals: { v2: 3 }, frames: { v2: 3 } });
  script.fact();
  expect(holesIn(but(script.log, 3, 4), { firstSeq: 5 })).toEqual([]);
  expect(holesIn(but(script.log, 3, 4), { firstSeq: 1 })).toEqual([[7, 8, "v2 2-3: 2"]]);
});

it("an erased session is not lost; what else went is, and what is lost of the session when it is imported anew", () => {
  const script = twoSessions();
  script.own("A", sessionErased("A", [{ channel: "tapedeck", first: 1n, last: 1n }]));
  expect(holesIn(but(script.log, 1, 2, 3, 4))).toEqual([]);
  expect(holesIn(but(script.log, 1, 2, 3, 4, 6))).toEqual([[5, 7, "v2 1-1: 1"]]);
  expect(holesIn(but(script.log, 1, 2, 3, 4, 5))).toEqual([[undefined, 6, "tapedeck 2-2: 1"]]);
  script.numbers.begin("A");
  script.fact();
  script.fact();
  script.fact();
  expect(holesIn(but(script.log, 1, 2, 3, 4, 10))).toEqual([[9, 11, "v2 2-2: 1"]]);
  // What it was before was read before it was erased.
  expect(holesIn(but(script.log, 9))).toEqual([[8, 10, "v2 1-1: 1"]]);
});

it("events that were erased with their source are not lost, and those that go after the mark are", () => {
  const script = twoSessions();
  script.own("", sourceErased()); // 8
  for (const left of [1, 4, 7]) expect(holesIn(script.log.filter(({ seq }) => seq <= left || seq === 8))).toEqual([]);
  expect(holesIn(script.log.slice(-1))).toEqual([]);
  script.begin("C");
  script.fact();
  script.fact();
  expect(holesIn(but(script.log.slice(-4), 10))).toEqual([[9, 11, "v2 1-1: 1"]]);
});

it("the events of an older erasure, whose mark does not say it, are not lost", () => {
  const script = twoSessions();
  script.own("A", { kind: "session.erased", subject: "A", summary: "" });
  expect(holesIn(but(script.log, 1, 2, 3, 4))).toEqual([]);
});

it("text that may have expired is not lost; facts between it are, and text that can't have expired yet", () => {
  const script = scenario(60);
  script.begin("A");
  script.fact(); // 2
  script.text();
  script.text();
  script.fact(); // 5
  script.text();
  script.fact(); // 7
  expect(holesIn(but(script.log, 3, 4, 6))).toEqual([]);
  expect(holesIn(but(script.log, 3, 4, 5, 6))).toEqual([[2, 7, "v2 2-5: 1"]]);
  expect(holesIn(but(script.log, 3), { nowMs: () => -1_000 })).toEqual([[2, 4, "v2 2-2: 1"]]);
});

it("text that expires while the log is read is not lost, nor is what another clock has dropped", () => {
  const script = scenario(60);
  script.begin("A");
  script.text(); // 2
  script.fact();
  script.text(); // 4
  script.fact();
  let now = -60_000;
  const nowMs = () => {
    now += 60_010;
    return now;
  };
  // What is missing when the first of them is read is too young.
  expect(holesIn(but(script.log, 2, 4), { nowMs: () => -60_000 })).toHaveLength(2);
  expect(holesIn(but(script.log, 2, 4), { nowMs })).toEqual([]);
});

it("text of before its life was lengthened had the old one", () => {
  const before = scenario(3_600);
  before.begin("A");
  before.fact();
  before.text(); // 3
  before.text();
  const after = scenario(7 * 86_400, before.log.at(-1)?.cursor);
  after.own("", sourceCheckpoint());
  after.text(); // 6
  after.fact();
  const log = [...before.log, ...after.log.map((seen) => ({ ...seen, seq: seen.seq + 4 }))];
  expect(holesIn(but(log, 3, 4))).toEqual([]);
  expect(holesIn(but(log, 3, 4, 6))).toEqual([[5, 7, "v2 4-4: 1"]]);
});

it("where an earlier session goes on, the ordinals that were left out for text that may have expired are not missing", () => {
  const script = twoSessions();
  script.numbers.continueSession("A", raised({ ordinals: { v2: 3 }, frames: { v2: 3 } }, 5_000));
  script.own("A", { kind: "upstream.restored", summary: "" });
  script.fact(); // 9
  script.fact();
  expect(holesIn(script.log)).toEqual([]);
  expect(holesIn(but(script.log, 9))).toEqual([[8, 10, "v2 5004-5004: 1"]]);
  expect(holesIn(but(script.log, 8, 9))).toEqual([[7, 10, "v2 4-5004: 1", "tapedeck 3-3: 1"]]);
});

it("text of an earlier session may expire after it went on, though nobody's text expires any more", () => {
  const script = scenario(60);
  script.begin("A");
  script.fact();
  script.text(); // 3
  script.begin("B");
  const on = scenario(undefined, script.log.at(-1)?.cursor);
  on.own("", sourceCheckpoint());
  on.numbers.continueSession("A", raised({ ordinals: { v2: 2 }, frames: { v2: 2 } }, 2));
  on.fact();
  const log = [...script.log, ...on.log.map((seen) => ({ ...seen, seq: seen.seq + 4 }))];
  expect(holesIn(log)).toEqual([]);
  expect(holesIn(but(log, 3))).toEqual([]);
});

it("a log of before texts were counted keeps nobody from knowing facts without a retention, and accuses no other", () => {
  const { log } = scenario(60, undefined);
  expect(log).toEqual([]);
  const script = scenario(60);
  script.begin("A");
  script.fact();
  script.text();
  script.fact();
  const old = script.log.map(({ cursor: { texts: _, kept: __, ...cursor }, ...seen }) => ({ ...seen, cursor }));
  expect(holesIn(but(old, 3))).toEqual([]);
});

it("ordinals that nobody was given are not missing", () => {
  const script = scenario();
  script.begin("A");
  const imported = Event.fromPartial({ session: "A", channel: "v2", ordinal: 5n, kind: "build.started" });
  const { written } = script.numbers.imported(imported, "facts");
  script.log.push({ seq: 2, recordedAtMs: 2, expires: false, counts: { v2: 1 }, cursor: written.cursor });
  expect(holesIn(script.log)).toEqual([]);
});

it("recorded damage is not recorded again, and what went since is", () => {
  const script = twoSessions();
  const lost = {
    after: "e-2",
    before: "e-4",
    events: 1n,
    ordinals: [{ channel: "v2", first: 2n, last: 2n }],
  };
  script.own("A", lostFromLog(lost));
  expect(holesIn(but(script.log, 3))).toEqual([]);
  expect(holesIn(but(script.log, 2, 3))).toEqual([[1, 4, "v2 1-1: 1"]]);
});

it("ranges", () => {
  expect(rangesOf([1, 2, 4, 7, 8])).toEqual([
    { first: 1, last: 2 },
    { first: 4, last: 4 },
    { first: 7, last: 8 },
  ]);
  expect(
    without({ first: 1, last: 10 }, [
      { first: 2, last: 3 },
      { first: 9, last: 20 },
    ]),
  ).toEqual([
    { first: 1, last: 1 },
    { first: 4, last: 8 },
  ]);
});
