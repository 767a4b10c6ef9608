import { createHmac, hash } from "node:crypto";
import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";
import { msOfTimestamp, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import { describe, expect, it } from "vitest";
import { described, fact, frame } from "../../inventory/testing/outcome-fields.ts";
import { eventsOf, job, line, lines, outputGap, type Play, play, written } from "../testing/jobs-play.ts";

const running = job("j", { state: "RUNNING", command: "up", assigned: 1_000, acked: 1_000 });
const done = job("j", { state: "SUCCESS", command: "up", assigned: 1_000, acked: 1_000, completed: 2_000 });
const ended = [
  frame(
    fact("job.succeeded", "j", { outcome: Outcome.OUTCOME_UNKNOWN }),
    fact("command.finished", "j", { inferred: true, outcome: Outcome.OUTCOME_UNKNOWN, command: "up" }),
  ),
];
const complete = frame(fact("mirror.received", "j", { what: "complete" }));
/** What the real server keeps. */
const windowSize = 5_248;

function begun(options: NonNullable<Parameters<typeof play>[0]> = {}): Play {
  const harness = play(options);
  harness.list(1_000, running);
  return harness;
}

/** A stream of a job that runs. */
function live(harness: Play, at = 1_000) {
  const stream = harness.stream("j");
  stream.state(at, running);
  return stream;
}

/** A stream that is opened after the job was over. */
function late(harness: Play) {
  const stream = harness.stream("j");
  stream.state(3_000, done);
  return stream;
}

/** What a server replays that has printed so much. */
function replay(total: number) {
  return lines(total - (total % windowSize), total);
}

describe("output", () => {
  it("comes as it is printed, before the job is seen to run too", () => {
    const harness = play();
    harness.list(1_000, job("j", { state: "WAITING", command: "up", assigned: 1_000 }));
    const stream = harness.stream("j");
    expect(stream.prints(1_001, lines(0, 2), true)).toEqual(written({ job: "j", index: 0n, next_index: 2n }));
    expect(stream.prints(1_002, lines(2, 3))).toEqual(written({ job: "j", index: 2n, next_index: 3n }));
    expect(stream.state(1_003, running)).toEqual([
      frame(fact("job.started", "j"), fact("command.started", "j", { command: "up" })),
    ]);
    expect(stream.prints(1_004, lines(3, 70))).toEqual(written({ job: "j", index: 3n, next_index: 70n }));
  });

  it("goes on where it was when a stream was lost, in its replay or after it", () => {
    const harness = begun();
    const first = live(harness);
    expect(first.prints(1_001, lines(0, 100))).toEqual(written({ job: "j", index: 0n, next_index: 100n }));
    expect(first.ends(1_002, 14)).toEqual([]);
    const second = live(harness);
    expect(second.prints(1_003, lines(0, 64), true)).toEqual([]);
    expect(second.ends(1_004, 14)).toEqual([]);
    const third = live(harness);
    expect(third.prints(1_005, lines(0, 64), true)).toEqual([]);
    expect(third.prints(1_006, lines(64, 120), true)).toEqual([
      ...written({ job: "j", index: 100n, next_index: 120n }),
    ]);
    expect(third.prints(1_007, lines(120, 130))).toEqual(written({ job: "j", index: 120n, next_index: 130n }));
  });

  it("that was cut when the job was over comes with the next stream, and then it is whole", () => {
    const harness = begun();
    const first = live(harness);
    first.prints(1_001, lines(0, 10));
    expect(first.state(2_000, done)).toEqual(ended);
    expect(first.complete(2_001)).toEqual([]);
    expect(first.ends(2_001)).toEqual([]);
    const again = late(harness);
    expect(again.prints(3_001, lines(0, 25), true)).toEqual(written({ job: "j", index: 10n, next_index: 25n }));
    expect(again.complete(3_002)).toEqual([complete]);
    expect(again.ends(3_002)).toEqual([]);
    // A watcher that repeats it now repeats it.
    expect(late(harness).prints(3_003, lines(0, 25), true)).toEqual([]);
  });

  it("is not whole by a stream that began before the job was over, though a list has shown its end before", () => {
    const harness = begun();
    const first = harness.stream("j", ulid(1_500));
    expect(harness.list(2_000, done)).toEqual(ended);
    expect(first.state(2_001, running)).toEqual([]);
    expect(first.prints(2_002, lines(0, 2))).toEqual(written({ job: "j", index: 0n, next_index: 2n }));
    first.state(2_003, done);
    expect(first.complete(2_004)).toEqual([]);
    const again = late(harness);
    expect(again.prints(3_001, lines(0, 5), true)).toEqual(written({ job: "j", index: 2n, next_index: 5n }));
    expect(again.complete(3_002)).toEqual([complete]);
  });

  it("of a job that was not seen to start may be cut when the server does not know the job any more", () => {
    const harness = play();
    harness.list(1_000, job("j", { state: "WAITING", command: "up", assigned: 1_000 }));
    const stream = harness.stream("j");
    stream.prints(1_001, lines(0, 2));
    stream.ends(1_002, 14);
    expect(harness.list(2_000)).toEqual([
      outputGap({ job: "j", index: 2n }),
      frame(fact("job.lost", "j", { outcome: Outcome.OUTCOME_UNKNOWN })),
    ]);
  });

  it.each([
    ["nothing new, nothing was printed", 0, 0, [], [complete]],
    ["nothing new", 100, 100, [], [complete]],
    ["nothing new, at the end of a window", windowSize, windowSize, [], [complete]],
    ["more of the same window", 100, 200, written({ job: "j", index: 100n, next_index: 200n }), [complete]],
    [
      "the next window, begun where nothing is missing",
      windowSize,
      windowSize + 2,
      written({ job: "j", index: 5248n, next_index: 5250n }),
      [complete],
    ],
    [
      "a window that moved on",
      5_000,
      windowSize + 100,
      [
        outputGap({ job: "j", index: 5000n, next_index: 5248n, at_least: true }),
        ...written({ job: "j", index: 5248n, next_index: 5348n }),
      ],
      [complete],
    ],
    [
      "a window that moved on by one more than it was full",
      5_247,
      windowSize + 1,
      [
        outputGap({ job: "j", index: 5247n, next_index: 5248n, at_least: true }),
        ...written({ job: "j", index: 5248n, next_index: 5249n }),
      ],
      [complete],
    ],
    [
      "more than one window",
      5_000,
      12_000,
      [
        outputGap({ job: "j", index: 5000n, next_index: 5248n, at_least: true }),
        ...written({ job: "j", index: 5248n, next_index: 6752n }),
      ],
      [complete],
    ],
    [
      "nothing, as the window has just moved on",
      5_000,
      windowSize,
      [],
      [outputGap({ job: "j", index: 5000n }), complete],
    ],
  ])("is aligned with the replay: %s", (_, before, total, outcomes, end) => {
    const harness = begun();
    const first = live(harness);
    if (before > 0) first.prints(1_001, lines(0, before));
    first.state(2_000, done);
    first.complete(2_001);
    const again = late(harness);
    const events = replay(total);
    const seen = [];
    for (let at = 0; at < events.length; at += 64)
      seen.push(...again.prints(3_001 + at, events.slice(at, at + 64), true));
    expect(seen).toEqual(outcomes);
    expect(again.complete(9_000)).toEqual(end);
  });

  it("knows by the first event that differs, or by the end of the replay, that a window moved on", () => {
    const equal = (count: number) => Array.from({ length: count }, () => line("="));
    const harness = begun({ windowSize: 10 });
    const first = live(harness);
    expect(first.prints(1_001, equal(7))).toEqual(written({ job: "j", index: 0n, next_index: 7n }));
    first.ends(1_002, 14);
    // It may be the same window as long as it repeats what is known.
    const second = live(harness);
    expect(second.prints(1_003, equal(3), true)).toEqual([]);
    expect(second.prints(1_004, lines(9, 10), true)).toEqual([
      outputGap({ job: "j", index: 7n, next_index: 10n, at_least: true }),
      ...written({ job: "j", index: 10n, next_index: 14n }),
    ]);
    // Each was seen when it came: a recorder that is stopped now gets all observations from the last one that is
    // recorded.
    const seen = harness.record.slice(-4).map((one) => (one.what === "frame" ? msOfTimestamp(one.observedAt) : 0));
    expect(seen).toEqual([1_003, 1_003, 1_003, 1_004]);
    second.ends(1_005, 14);
    const third = live(harness);
    expect(third.prints(1_006, equal(2), true)).toEqual([]);
    expect(third.prints(1_007, lines(50, 51))).toEqual([
      outputGap({ job: "j", index: 14n, next_index: 20n, at_least: true }),
      ...written({ job: "j", index: 20n, next_index: 23n }),
    ]);
    third.ends(1_008, 14);
    const fourth = live(harness);
    expect(fourth.prints(1_009, equal(1), true)).toEqual([]);
    fourth.state(2_000, done);
    expect(fourth.complete(2_001)).toEqual([
      outputGap({ job: "j", index: 23n, next_index: 30n, at_least: true }),
      ...written({ job: "j", index: 30n, next_index: 31n }),
    ]);
  });

  it("of a live stream without a replay begins the next window", () => {
    const harness = begun({ windowSize: 10 });
    const first = live(harness);
    first.prints(1_001, lines(0, 7));
    first.ends(1_002, 14);
    expect(live(harness).prints(1_003, lines(10, 12))).toEqual([
      outputGap({ job: "j", index: 7n, next_index: 10n, at_least: true }),
      ...written({ job: "j", index: 10n, next_index: 12n }),
    ]);
  });

  it("that is missing is at least so much, as windows may have moved on unseen", () => {
    const harness = begun();
    live(harness).prints(1_001, lines(0, 4_313));
    // 6,183 more were printed while nobody listened: windowSize of them leave no trace.
    live(harness).prints(29_000, replay(4_313 + 6_183 + 100), true);
    const gap = harness.record.find(({ what }) => what === "gap");
    expect(gap).toMatchObject({
      reason: "at least 935 terminal events of job j are missing: the server drops 5248 at a time",
      output: { index: 4313n, next_index: 5248n, at_least: true },
    });
  });

  it("is known again where an upgrade masks it otherwise", () => {
    const identityOf = (bytes: Uint8Array) => createHmac("sha256", "key").update(bytes).digest();
    const masking = (secret: string) => ({
      identityOf,
      mask(_: string, bytes: Uint8Array) {
        const text = Buffer.from(bytes).toString("latin1");
        const masked = text.replaceAll(secret, "*".repeat(secret.length));
        return { bytes: Buffer.from(masked, "latin1"), redacted: text.split(secret).length - 1 };
      },
    });
    const printed = ["a SECRET", "plain", "a TOKEN", "a SECRET and TOKEN"].map((text) => line(text));
    const before = play({}, masking("SECRET"));
    before.list(1_000, running);
    live(before).prints(1_001, printed);
    const after = play({}, masking("TOKEN"));
    for (const event of eventsOf(before.record)) after.watcher.resume(event);
    after.watcher.connected();
    after.list(2_000, running);
    const stream = live(after);
    expect(stream.prints(2_001, printed, true)).toEqual([]);
    expect(stream.prints(2_002, [line("more")])).toEqual(written({ job: "j", index: 4n, next_index: 5n }));
  });

  it("that the tap had to drop is a gap, of just that", () => {
    const harness = begun();
    const stream = live(harness);
    stream.prints(1_001, lines(0, 5));
    expect(harness.stream("j", stream.id, 8).prints(1_004, lines(8, 10))).toEqual([
      outputGap({ job: "j", index: 5n, next_index: 8n }),
      ...written({ job: "j", index: 8n, next_index: 10n }),
    ]);
    // What came late does not come back.
    stream.ends(1_005, 14);
    expect(live(harness).prints(1_006, lines(0, 12), true)).toEqual([
      ...written({ job: "j", index: 10n, next_index: 12n }),
    ]);
  });

  it("is kept byte by byte, text or not", () => {
    const harness = begun();
    const raw = TerminalEvent.fromPartial({
      event: { $case: "raw", value: { data: Buffer.from([0xff, 0xfe, 0x00]), stderr: true } },
    });
    // None of our encoders writes this: fields in another order, one that is not known, a line that is not UTF-8.
    const odd = Buffer.from([0xf8, 0x3f, 0x05, 0x12, 0x03, 0x0a, 0x01, 0xff]);
    const broken = Buffer.from([0xff, 0xff]);
    const events = [Buffer.from(TerminalEvent.encode(raw).finish()), odd, broken, Buffer.alloc(0)];
    const message = Buffer.concat(events.map((event) => Buffer.from([0x0a, event.length, ...event])));
    const stream = live(harness);
    expect(stream.bytes(1_001, Buffer.from([0x1a, message.length, ...message]))).toEqual([
      ...written({ job: "j", index: 0n, next_index: 4n }),
    ]);
    const kept = harness.record.slice(-4).map((seen) => (seen.what === "frame" ? seen.original?.bytes : undefined));
    expect(kept).toEqual(events);
    const texts = harness.record
      .slice(-4)
      .map((seen) =>
        seen.what === "frame" && seen.facts[0].detail?.$case === "text" ? seen.facts[0].detail.value.text : "",
      );
    expect(texts).toEqual(["\ufffd\ufffd\u0000", "\ufffd\n", "", ""]);
    stream.ends(1_002, 14);
    expect(live(harness).bytes(1_003, Buffer.from([0x1a, message.length + 2, ...message, 0x10, 1]))).toEqual([]);
  });

  it("of 100,000 events comes once each, and is read again in no time", () => {
    const harness = begun();
    const total = 100_000;
    const stream = live(harness);
    const all = lines(0, total);
    for (let at = 0; at < total - 100; at += 64)
      stream.prints(2_000 + at, all.slice(at, Math.min(at + 64, total - 100)));
    stream.state(200_000, done);
    stream.complete(200_001);
    const again = late(harness);
    const rest = replay(total);
    for (let at = 0; at < rest.length; at += 64) again.prints(300_000 + at, rest.slice(at, at + 64), true);
    expect(again.complete(400_000)).toEqual([complete]);
    const written = harness.record.flatMap((seen) =>
      seen.what === "frame" && seen.facts[0].detail?.$case === "text" ? [seen.facts[0].detail.value] : [],
    );
    expect(written.length).toBe(total);
    expect(written.every(({ text, output }, index) => text === `a${index}\n` && output?.index === BigInt(index))).toBe(
      true,
    );
  });
});

describe("output that may be cut", () => {
  const cut = [outputGap({ job: "j", index: 3n })];

  function over(): Play {
    const harness = begun();
    const first = live(harness);
    first.prints(1_001, lines(0, 3));
    first.state(2_000, done);
    first.complete(2_001);
    first.ends(2_002);
    return harness;
  }

  it.each([
    ["the connection is gone", [14]],
    ["the server knows the job no more", [5]],
    ["it could not be read twice", [13, 13]],
  ])("is a gap, recorded once: %s", (_, codes) => {
    const harness = over();
    const reported = codes.map((code, index) => harness.stream("j").ends(3_000 + index, code));
    expect(reported.at(-1)).toEqual(cut);
    expect(reported.slice(0, -1).flat()).toEqual([]);
    expect(harness.stream("j").ends(4_000, 14)).toEqual([]);
    // It can be read after all.
    const again = late(harness);
    expect(again.prints(5_000, lines(0, 4), true)).toEqual(written({ job: "j", index: 3n, next_index: 4n }));
    expect(again.complete(5_001)).toEqual([complete]);
    const gap = harness.record.find(({ what }) => what === "gap");
    expect(gap).toEqual({
      what: "gap",
      reason: "the output of job j may be cut",
      after: { seconds: 2n, nanos: 1_000_000 },
      until: { seconds: 3n, nanos: (codes.length - 1) * 1_000_000 },
      output: { job: "j", index: 3n },
    });
  });

  it("is none of a job that is not over, never began, or ends well", () => {
    const harness = begun();
    expect(live(harness).ends(1_001, 14)).toEqual([]);
    const queued = play();
    const canceled = job("j", { state: "ERROR", canceled: 1_500, error: { code: 1 } });
    queued.list(1_000, canceled);
    expect(queued.stream("j").ends(2_000, 14)).toEqual([]);
    const stream = queued.stream("j");
    stream.state(2_001, canceled);
    expect(stream.complete(2_002)).toEqual([complete]);
    expect(queued.list(3_000)).toEqual([]);
  });

  it("is that of a server which was started anew: it has no output of what ran before", () => {
    const harness = begun();
    live(harness).prints(1_001, lines(0, 3));
    harness.watcher.connected();
    const lost = job("j", {
      state: "ERROR",
      command: "up",
      assigned: 1_000,
      acked: 1_000,
      canceled: 2_000,
      error: { code: 1 },
    });
    const stream = live(harness);
    expect(stream.state(2_000, lost)).toEqual([
      frame(
        fact("job.canceled", "j", { outcome: Outcome.OUTCOME_CANCELED, reason: "heartbeat" }),
        fact("command.finished", "j", { inferred: true, outcome: Outcome.OUTCOME_CANCELED, command: "up" }),
      ),
    ]);
    expect(stream.complete(2_001)).toEqual([]);
    const again = harness.stream("j");
    again.state(2_002, lost);
    expect(again.complete(2_003)).toEqual([outputGap({ job: "j", index: 3n }), complete]);
  });
});

describe("output of a job that a server has given up", () => {
  const times = { command: "up", assigned: 1_000, acked: 1_000, canceled: 2_000 };
  const error = { code: 1, message: "canceled", details: [] };
  const givenUp = job("j", { state: "ERROR", ...times, error });

  function readAgain(harness: Play, replayed = lines(0, 0)) {
    const stream = harness.stream("j");
    stream.state(3_000, givenUp);
    const printed = stream.prints(3_001, replayed, true);
    return { printed, atEnd: stream.reports(3_002, { $case: "complete", value: { error, result: undefined } }) };
  }

  it("may be that of a server before it, which nobody has heard, where it has none", () => {
    const harness = begun();
    live(harness).ends(1_001, 14);
    harness.watcher.connected();
    expect(readAgain(harness)).toEqual({ printed: [], atEnd: [outputGap({ job: "j", index: 0n }), complete] });
    // A recorder that first connects to the second server sees the same.
    expect(readAgain(play())).toEqual({ printed: [], atEnd: [outputGap({ job: "j", index: 0n }), complete] });
  });

  it("is reported once to be in doubt", () => {
    const harness = begun();
    live(harness).prints(1_001, lines(0, 3));
    expect(readAgain(harness)).toEqual({ printed: [], atEnd: [outputGap({ job: "j", index: 3n }), complete] });
    const over = begun();
    over.list(2_000, givenUp);
    expect(over.stream("j").ends(2_500, 14)).toEqual([outputGap({ job: "j", index: 0n })]);
    expect(readAgain(over)).toEqual({ printed: [], atEnd: [complete] });
  });

  it("is whole where the server has some, or the job never began", () => {
    const harness = begun();
    live(harness).prints(1_001, lines(0, 1));
    expect(readAgain(harness, lines(0, 2))).toEqual({
      printed: written({ job: "j", index: 1n, next_index: 2n }),
      atEnd: [complete],
    });
    const waited = play();
    const canceled = job("j", { state: "ERROR", command: "up", canceled: 2_000, error });
    waited.list(2_000, canceled);
    const stream = waited.stream("j");
    stream.state(3_000, canceled);
    expect(stream.reports(3_002, { $case: "complete", value: { error, result: undefined } })).toEqual([complete]);
  });
});

describe("a first replay", () => {
  /** The facts of a job of which nothing is known yet, in a stream that is opened, and replays, at these moments. */
  function first(now: ReturnType<typeof job>, opened: number, at: number, isReplay = true) {
    const harness = play();
    harness.list(1_000, job("j", { state: "WAITING", command: "up", assigned: 900 }));
    const stream = harness.stream("j", ulid(opened));
    stream.state(at, now);
    return { harness, stream, outcomes: stream.prints(at, lines(0, 3), isReplay) };
  }

  // How long a job takes that fills a window with 20,000 events a second, and prints the three that are left.
  const noticeable = 263;

  it.each([
    [
      "of a stream that was opened before the job ran, however late it is heard",
      running,
      999,
      9_000,
      written({ job: "j", index: 0n, next_index: 3n }),
    ],
    [
      "soon after the job began",
      running,
      1_000 + noticeable - 1,
      9_000,
      written({ job: "j", index: 0n, next_index: 3n }),
    ],
    [
      "noticeably later",
      running,
      1_000 + noticeable,
      9_000,
      [outputGap({ job: "j", index: 0n }), ...written({ job: "j", index: 0n, next_index: 3n })],
    ],
    [
      "of a job that was over soon",
      { ...done, complete_time: timestampOfMs(1_100) },
      9_000,
      9_000,
      written({ job: "j", index: 0n, next_index: 3n }),
    ],
    [
      "of a job that took longer",
      done,
      9_000,
      9_000,
      [outputGap({ job: "j", index: 0n }), ...written({ job: "j", index: 0n, next_index: 3n })],
    ],
  ])("%s", (_, now, opened, at, outcomes) => {
    expect(first(now, opened, at).outcomes).toEqual(outcomes);
  });

  it("that may lack something says what is known, once", () => {
    const { harness, stream } = first(running, 3_500, 3_600);
    const gap = harness.record.find(({ what }) => what === "gap");
    expect(gap).toMatchObject({
      reason:
        "the output of job j was first read when it had run for 2.5 s, " +
        "and the server drops terminal events 5248 at a time: its beginning may be missing",
      output: { job: "j", index: 0n },
    });
    expect(stream.prints(3_700, lines(3, 6), true)).toEqual(written({ job: "j", index: 3n, next_index: 6n }));
    stream.ends(3_800, 14);
    expect(harness.stream("j").prints(3_900, lines(0, 6), true)).toEqual([]);
  });

  it("of nothing, or of nothing but what comes now, lacks nothing", () => {
    const { harness, outcomes } = first(running, 9_000, 9_000, false);
    expect(outcomes).toEqual(written({ job: "j", index: 0n, next_index: 3n }));
    expect(harness.record.some(({ what }) => what === "gap")).toBe(false);
  });

  it("is late for who knows the job from the log, too", () => {
    const harness = begun();
    harness.list(2_000, done);
    expect(late(resumed(harness)).prints(3_000, lines(0, 2), true)).toEqual([
      outputGap({ job: "j", index: 0n }),
      ...written({ job: "j", index: 0n, next_index: 2n }),
    ]);
    const short = play();
    short.list(2_000, { ...done, complete_time: timestampOfMs(1_100) });
    expect(late(resumed(short)).prints(3_000, lines(0, 2), true)).toEqual([
      ...written({ job: "j", index: 0n, next_index: 2n }),
    ]);
  });
});

function resumed(before: Play): Play {
  const after = play();
  for (const event of eventsOf(before.record)) after.watcher.resume(event);
  after.watcher.connected();
  return after;
}

describe("a log that drops text after a while", () => {
  const same = { $case: "same", value: true } as const;

  it("learns how much a job has printed before the first of it goes, as long as something was printed", () => {
    const harness = begun({ textTtl: 100 });
    const stream = live(harness);
    stream.prints(2_000, lines(0, 10));
    stream.prints(40_000, lines(10, 12));
    expect([51_999, 52_000, 60_000, 500_000].map((at) => harness.observation(at, same))).toEqual([
      [],
      [described],
      [],
      [],
    ]);
    stream.prints(600_000, lines(12, 13));
    expect([649_999, 650_000].map((at) => harness.observation(at, same))).toEqual([[], [described]]);
  });

  it("has what a running job printed once, whoever goes on", () => {
    const harness = begun({ textTtl: 100 });
    const stream = live(harness);
    stream.prints(2_000, lines(0, 10));
    harness.observation(52_000, same);
    stream.prints(60_000, lines(10, 12));
    const after = play({ textTtl: 100 });
    for (const event of eventsOf(harness.record)) {
      const isKept = event.kind !== "terminal.written" || msOfTimestamp(event.observed_at ?? timestampOfMs(0)) > 50_000;
      if (isKept) after.watcher.resume(event);
    }
    after.watcher.connected();
    expect(live(after, 108_000).prints(109_000, lines(0, 15), true)).toEqual([
      ...written({ job: "j", index: 12n, next_index: 15n }),
    ]);
    // What was printed before that time began is not forgotten by who was resumed either.
    expect([109_999, 110_000].map((at) => after.observation(at, same))).toEqual([[], [described]]);
  });
});

describe("a watcher that was resumed from the log", () => {
  it("goes on in the middle of a message", () => {
    const harness = begun();
    const stream = live(harness);
    stream.prints(1_001, lines(0, 10));
    stream.prints(1_002, lines(10, 20));
    const cutAt = harness.record.length - 4;
    const after = resumed({ ...harness, record: harness.record.slice(0, cutAt) });
    const again = after.stream("j", stream.id);
    expect(again.prints(1_001, lines(0, 10))).toEqual([]);
    expect(again.prints(1_002, lines(10, 20))).toEqual(written({ job: "j", index: 16n, next_index: 20n }));
    expect(again.prints(1_003, lines(20, 21))).toEqual(written({ job: "j", index: 20n, next_index: 21n }));
  });

  it("goes on in a replay of which it has not seen the begin", () => {
    const harness = begun();
    live(harness).prints(1_001, lines(0, 100));
    const after = resumed(harness);
    const stream = after.stream("j", ulid(), 64);
    expect(stream.prints(1_003, lines(64, 110), true)).toEqual([
      ...written({ job: "j", index: 100n, next_index: 110n }),
    ]);
    const another = resumed(harness);
    expect(another.stream("j", ulid(), 100).prints(1_003, lines(100, 110))).toEqual([
      ...written({ job: "j", index: 100n, next_index: 110n }),
    ]);
    // It has been held until it differed, and its holder is gone.
    const moved = resumed(harness);
    const next = moved.stream("j", ulid(), 64);
    expect(next.prints(1_003, lines(windowSize + 64, windowSize + 70), true)).toEqual([
      outputGap({ job: "j", index: 100n, next_index: 5312n, at_least: true }),
      ...written({ job: "j", index: 5312n, next_index: 5318n }),
    ]);
  });

  it("knows that the output is whole, or by the stream's age that it will be", () => {
    const harness = begun();
    const first = harness.stream("j", ulid(1_000));
    first.state(1_000, running);
    first.prints(1_001, lines(0, 3));
    first.state(2_000, done);
    const beforeEnd = resumed(harness);
    // The same stream does not end the output.
    expect(beforeEnd.stream("j", first.id, 3).complete(2_001)).toEqual([]);
    const name = ulid(2_500);
    const again = harness.stream("j", name);
    again.state(2_501, done);
    expect(resumed(harness).stream("j", name).prints(2_502, lines(0, 3), true)).toEqual([]);
    expect(resumed(harness).stream("j", name, 3).complete(2_503)).toEqual([complete]);
    expect(resumed(harness).stream("j", ulid(2_000), 3).complete(2_503)).toEqual([]);
    again.prints(2_502, lines(0, 3), true);
    expect(again.complete(2_503)).toEqual([complete]);
    expect(late(resumed(harness)).prints(3_000, lines(0, 9), true)).toEqual([]);
  });

  it("compares with what is in the log by its digest alone", () => {
    const harness = begun();
    live(harness).prints(1_001, lines(0, 3));
    const after = play();
    for (const event of eventsOf(harness.record)) {
      const { original } = event;
      if (event.kind !== "terminal.written" || original === undefined) after.watcher.resume(event);
      else {
        const sha256 = hash("sha256", original.bytes, "buffer");
        after.watcher.resume({ ...event, original: { ...original, bytes: Buffer.alloc(0), sha256 } });
      }
    }
    expect(live(after).prints(1_002, lines(0, 4), true)).toEqual(written({ job: "j", index: 3n, next_index: 4n }));
  });
});
