import { createHash } from "node:crypto";
import { type Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { msOfTimestamp, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it } from "vitest";
import { type FakeLog, fakeLog } from "../testing/fake-log.ts";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { openSessionRecorder, type SessionRecorder } from "./session-recorder.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const plain = plainNormalizer(
  { name: "a", replays: true },
  { name: "b", replays: true },
  { name: "part", replays: false },
);
const well = () => ({ lands: "now", answers: true }) as const;

type What = NonNullable<Item["what"]>;
const dialled: What = { $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["a", "b"] } };
const closed = (process_ended = false): What => ({ $case: "closed", value: { reason: "cut", process_ended } });
const frame = (channel: string, text: string, more = false): What => ({
  $case: "frame",
  value: { channel, bytes: Buffer.from(text), more },
});
const described = (channel: string, state: string): What => ({
  $case: "described",
  value: { channel, state: Buffer.from(state) },
});

const labelled = (labels: Record<string, string>, since?: number): What => ({
  $case: "labelled",
  value: { labels, since: since === undefined ? undefined : timestampOfMs(since) },
});

/** A tap that remembers what it pushed, so that it can push it again. */
function testTap(
  log: FakeLog,
  {
    redact = "on",
    requireRedact = false,
    firstIndex = 1n,
    tap = "T",
    normalizer = plain,
    key = Buffer.from("a key"),
  } = {},
) {
  const items: Item[] = [];
  const reported: string[] = [];
  const controller = new AbortController();
  const open = (first_index: bigint) =>
    openSessionRecorder({
      log: { writer: log, reader: log.reader },
      source,
      normalizer,
      requireRedact,
      hello: {
        developer: "Alice",
        project: "Shop",
        upstream: "skaffold",
        tap,
        labels: { branch: "main" },
        redact,
        first_index,
        settings: {},
      },
      signal: controller.signal,
      identityKey: key.byteLength === 0 ? undefined : key,
      listener: { session: (session) => void reported.push(session) },
    });
  let recording: Promise<SessionRecorder> = open(firstIndex);
  return {
    /** The sessions that the tap learned. */
    reported,
    /** Pushes one thing at a moment (ms), on a connection. */
    async push(ms: number, connection: string, what: Item["what"]) {
      const item: Item = { index: BigInt(items.length + 1), connection, at: timestampOfMs(ms), what };
      items.push(item);
      await (await recording).take(item);
    },
    async advance(ms: number) {
      await (await recording).advance(timestampOfMs(ms));
    },
    recording: () => recording,
    async settled() {
      const session = await recording;
      await until(() => session.committed() === BigInt(items.length), { message: "all to be committed" });
    },
    /** Kills the recorder, starts another one and pushes everything from an index on again. */
    async crash(from: number) {
      await (await recording)[Symbol.asyncDispose]();
      recording = open(BigInt(from));
      for (const item of items.slice(from - 1)) await (await recording).take(item);
    },
    [Symbol.asyncDispose]: async () => (await recording)[Symbol.asyncDispose](),
  };
}

const events = (log: FakeLog): Event[] => log.recorded().map(({ event }) => event);
const texts = (log: FakeLog, channel: string) =>
  events(log)
    .filter((event) => event.channel === channel && event.part === 0)
    .map(({ original }) => original?.bytes.toString());
const kinds = (log: FakeLog) =>
  events(log)
    .filter(({ channel }) => channel === "tapedeck")
    .map(({ kind }) => kind);
const sessions = (log: FakeLog) => new Set(events(log).flatMap(({ session }) => (session === "" ? [] : [session])));

describe("a first connection", () => {
  it("gives its session, fingerprints and frames with ordinals of their own", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(11, "C1", frame("b", "2 two+1"));
    await tap.push(12, "C1", frame("a", "3 three"));
    await tap.advance(300);
    await tap.push(400, "C1", frame("a", "4 SECRET"));
    await tap.settled();

    expect(kinds(log)).toEqual([
      "source.added",
      "upstream.connected",
      "session.started",
      "session.identified",
      "session.identified",
    ]);
    const [session] = sessions(log);
    expect(
      events(log)
        .map(({ id, frame_ordinal, part, summary }) => [id, frame_ordinal, part, summary])
        .slice(5),
    ).toEqual([
      [`${session}.a.1`, 1n, 0, "fact 1"],
      [`${session}.a.2`, 2n, 0, "fact 2"],
      [`${session}.b.1`, 1n, 0, "fact 1"],
      [`${session}.b.2`, 1n, 1, "fact 2"],
      [`${session}.a.3`, 3n, 0, "fact 3"],
    ]);
    expect(texts(log, "a")).toEqual(["1 one", "3 three", "4 ******"]);
    expect(events(log).at(-1)).toMatchObject({
      redacted: 1,
      occurred_at: timestampOfMs(400),
      observed_at: timestampOfMs(400),
    });
    expect(log.stored.at(-1)?.written.cursor).toEqual({
      session,
      kept: 10,
      ordinals: { tapedeck: 5, a: 3, b: 2 },
      frames: { tapedeck: 5, a: 3, b: 1 },
      settled: ["a", "b"],
    });
  });

  it("nothing is committed before the log has it", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await until(() => log.stored.length === 2, { message: "the connection to be recorded" });
    expect((await tap.recording()).committed()).toBe(1n);
    await tap.push(300, "C1", frame("a", "2 two"));
    await tap.settled();
  });

  it("a frame in pieces is one frame, and a frame too large is recorded without its bytes", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(1, "C1", frame("a", "1 on", true));
    await tap.push(2, "C1", frame("a", "e"));
    await tap.push(300, "C1", frame("a", `2 ${"x".repeat(8 * 1024 * 1024)}`));
    await tap.settled();
    expect(texts(log, "a")).toEqual(["1 one", ""]);
    expect(events(log).at(-1)?.original).toMatchObject({
      size: 8n * 1024n * 1024n + 2n,
      sha256: { length: 32 },
      head: { length: 65_536 },
    });
  });

  it("repeated frames that come out of order are sorted, later ones are not", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    for (const text of ["3 c", "1 a", "2 b"]) await tap.push(10, "C1", frame("a", text));
    await tap.push(500, "C1", frame("a", "9 z"));
    await tap.push(501, "C1", frame("a", "8 y"));
    await tap.settled();
    expect(texts(log, "a")).toEqual(["1 a", "2 b", "3 c", "9 z", "8 y"]);
  });

  it("without a frame there is no session", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(1, "C1", described("a", "state"));
    await tap.push(2, "C1", {
      $case: "channel_ended",
      value: { channel: "b", code: 12, message: "unknown", final: true },
    });
    await tap.push(3, "C1", closed(true));
    await tap.settled();
    expect(kinds(log)).toEqual(["source.added", "upstream.connected", "upstream.lost", "upstream.lost"]);
  });
});

describe("a connection to the same process", () => {
  const first = async (tap: ReturnType<typeof testTap>) => {
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one+1"));
    await tap.push(11, "C1", frame("b", "2 two"));
    await tap.push(500, "C1", frame("a", "garbage"));
    await tap.push(501, "C1", frame("a", "garbage"));
    await tap.push(600, "C1", closed());
  };

  it("goes on with the session and adds only what is new, however the repeat is shuffled", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await first(tap);
    await tap.push(700, "C2", dialled);
    await tap.push(710, "C2", frame("a", "7 new"));
    for (const text of ["garbage", "1 one+1", "garbage"]) await tap.push(711, "C2", frame("a", text));
    await tap.push(712, "C2", frame("b", "2 two"));
    await tap.push(1_000, "C2", frame("a", "garbage"));
    await tap.settled();
    expect(sessions(log).size).toBe(1);
    expect(texts(log, "a")).toEqual(["1 one+1", "garbage", "garbage", "7 new", "garbage"]);
    expect(texts(log, "b")).toEqual(["2 two"]);
    expect(
      events(log)
        .filter(({ channel }) => channel === "a")
        .map(({ ordinal, summary }) => [ordinal, summary]),
    ).toEqual([1n, 2n, 3n, 4n, 5n, 6n].map((ordinal) => [ordinal, `fact ${ordinal}`]));
    expect(kinds(log).slice(-3)).toEqual(["upstream.lost", "upstream.connected", "upstream.restored"]);
  });

  it("also when the session was thought to have ended", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await first(tap);
    await tap.push(601, "C1", closed(true));
    await tap.push(700, "C2", dialled);
    await tap.push(711, "C2", frame("a", "1 one+1"));
    await tap.push(712, "C2", closed());
    await tap.settled();
    expect(sessions(log).size).toBe(1);
    expect(kinds(log).slice(-4)).toEqual(["session.ended", "upstream.connected", "upstream.restored", "upstream.lost"]);
  });

  it("keeps the session's own setting for secrets", async () => {
    const log = fakeLog(well);
    {
      await using tap = testTap(log);
      await tap.push(0, "C1", dialled);
      await tap.push(10, "C1", frame("a", "1 SECRET"));
      await tap.push(600, "C1", closed());
      await tap.settled();
    }
    await using tap = testTap(log, { redact: "off", firstIndex: 1n });
    await tap.push(700, "C2", dialled);
    await tap.push(710, "C2", frame("a", "1 SECRET"));
    await tap.push(711, "C2", frame("a", "2 SECRET"));
    await tap.advance(1_000);
    await tap.settled();
    expect(texts(log, "a")).toEqual(["1 ******", "2 ******"]);
  });

  it("masks the rest of a session that began without masking where an operator forbids that", async () => {
    const log = fakeLog(well);
    {
      await using tap = testTap(log, { redact: "off" });
      await tap.push(0, "C1", dialled);
      await tap.push(10, "C1", frame("a", "1 SECRET"));
      await tap.push(600, "C1", closed());
      await tap.settled();
    }
    await using tap = testTap(log, { requireRedact: true });
    await tap.push(700, "C2", dialled);
    await tap.push(710, "C2", frame("a", "1 SECRET"));
    await tap.push(711, "C2", frame("a", "2 SECRET"));
    await tap.advance(1_000);
    await tap.settled();
    expect(texts(log, "a")).toEqual(["1 SECRET", "2 ******"]);
  });

  it("says what may be lost of a channel that repeats only a part", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(11, "C1", frame("part", "2 two"));
    await tap.push(12, "C1", frame("part", "3 three"));
    await tap.push(600, "C1", closed());
    for (const [connection, ms, tail] of [
      ["C2", 700, ["3 three", "4 four"]],
      ["C3", 2_000, ["6 six"]],
    ] as const) {
      await tap.push(ms, connection, dialled);
      await tap.push(ms + 1, connection, frame("a", "1 one"));
      for (const text of tail) await tap.push(ms + 2, connection, frame("part", text));
      await tap.push(ms + 600, connection, closed());
    }
    await tap.settled();
    expect(texts(log, "part")).toEqual(["2 two", "3 three", "4 four", "6 six"]);
    expect(
      events(log).flatMap(({ kind, detail }) =>
        kind === "session.gap" && detail?.$case === "gap" ? [detail.value.channel] : [],
      ),
    ).toEqual(["part"]);
  });

  it("says so too when its first lines, or all lines since, came while nobody listened", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    const connect = async (ms: number, connection: string, ...lines: string[]) => {
      await tap.push(ms, connection, dialled);
      await tap.push(ms + 1, connection, frame("a", "1 one"));
      for (const line of lines) await tap.push(ms + 300, connection, frame("part", line));
      await tap.push(ms + 600, connection, closed());
      await tap.settled();
      return kinds(log).filter((kind) => kind === "session.gap").length;
    };
    expect(await connect(0, "C1")).toBe(0);
    expect(await connect(1_000, "C2")).toBe(0);
    expect(await connect(2_000, "C3", "2 two")).toBe(1);
    expect(await connect(3_000, "C4", "2 two", "3 three")).toBe(1);
    expect(await connect(4_000, "C5")).toBe(2);
    expect(texts(log, "part")).toEqual(["2 two", "3 three"]);
    const own = events(log).filter(({ channel }) => channel === "tapedeck");
    expect(own.map(({ ordinal }) => Number(ordinal))).toEqual(own.map((_, index) => index + 1));
  });
});

it("another process on the same port is another session, and ordinals begin again", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(0, "C1", dialled);
  await tap.push(10, "C1", frame("a", "1 one"));
  await tap.push(600, "C1", closed());
  await tap.push(5_000, "C2", dialled);
  await tap.push(5_001, "C2", frame("a", "9 nine"));
  await tap.advance(5_300);
  await tap.settled();
  expect(kinds(log).slice(-4)).toEqual([
    "upstream.connected",
    "session.ended",
    "session.started",
    "session.identified",
  ]);
  const ended = events(log).find(({ kind }) => kind === "session.ended");
  expect(ended).toMatchObject({ time_source: 3, not_before: timestampOfMs(600) });
  expect(events(log).at(-1)).toMatchObject({ channel: "a", ordinal: 1n, frame_ordinal: 1n, summary: "fact 1" });
  expect(sessions(log).size).toBe(2);
});

it("an earlier session goes on when its process is met again", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(0, "C1", dialled);
  for (const text of ["1 one", "2 two"]) await tap.push(10, "C1", frame("a", text));
  await tap.push(600, "C1", closed());
  await tap.push(5_000, "C2", dialled);
  await tap.push(5_001, "C2", frame("a", "9 nine"));
  await tap.push(5_600, "C2", closed());
  await tap.push(6_000, "C3", dialled);
  for (const text of ["1 one", "2 two", "3 three"]) await tap.push(6_001, "C3", frame("a", text));
  await tap.push(6_500, "C3", frame("a", "4 four"));
  await tap.crash(8);
  await tap.push(7_000, "C3", frame("a", "5 five"));
  await tap.settled();
  const [first, second] = sessions(log);
  const of = (session: string | undefined) =>
    events(log)
      .filter((event) => event.session === session && event.channel === "a")
      .map(({ ordinal, original, summary }) => `${ordinal} ${original?.bytes} ${summary}`);
  expect(of(first)).toEqual(
    ["one", "two", "three", "four", "five"].map((n, i) => `${i + 1} ${i + 1} ${n} fact ${i + 1}`),
  );
  expect(of(second)).toEqual(["1 9 nine fact 1"]);
  expect(kinds(log).slice(-3)).toEqual(["upstream.connected", "session.ended", "upstream.restored"]);
});

it("the end of a process ends its session", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(0, "C1", dialled);
  await tap.push(10, "C1", frame("a", "1 one"));
  await tap.push(600, "C1", { $case: "closed", value: { reason: "cut", process_ended: true, exit_code: 2 } });
  await tap.settled();
  expect(kinds(log).slice(-2)).toEqual(["upstream.lost", "session.ended"]);
  expect(events(log).at(-1)?.detail).toMatchObject({ value: { reason: "process ended with exit code 2" } });
});

it.each([
  [{ ended_at: timestampOfMs(650), exit_code: 4 }, "ended with exit code 4"],
  [{ ended_at: timestampOfMs(650), signal: "SIGKILL" }, "was ended by SIGKILL"],
  [{}, "was still running"],
])("the end of a session says how the command ended that started its process: %o", async (known, text) => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  const run = { command_line: "make dev", started_at: timestampOfMs(0), ended_at: undefined, signal: "", ...known };
  await tap.push(0, "C1", dialled);
  await tap.push(10, "C1", frame("a", "1 one"));
  const closed = { reason: "cut", process_ended: true, command_run: { ...run, wrapper: true } };
  await tap.push(600, "C1", { $case: "closed", value: closed });
  await tap.settled();
  expect(events(log).at(-1)?.detail).toMatchObject({
    value: { reason: `process ended; the command that started it ${text}`, command_run: { command_line: "make dev" } },
  });
});

it("a command of whose upstream nothing was seen has a session of its own, without the secrets of its line", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  const token = `ghp_${"a1B2c3D4".repeat(5).slice(0, 36)}`;
  const command_run = {
    command_line: `skaffold build --build-env GH_TOKEN=${token}`,
    started_at: timestampOfMs(1_000),
    ended_at: timestampOfMs(1_600),
    exit_code: 2,
    signal: "",
  };
  await tap.push(1_000, "C1", { $case: "dialled", value: { address: "", channels: [] } });
  await tap.push(1_600, "C1", {
    $case: "closed",
    value: { reason: "the command has ended", process_ended: true, exit_code: 2, command_run },
  });
  await tap.settled();
  expect(kinds(log).slice(-4)).toEqual(["upstream.connected", "session.started", "upstream.lost", "session.ended"]);
  const [begin, end] = ["session.started", "session.ended"].map((kind) =>
    events(log).find((event) => event.kind === kind),
  );
  expect(begin?.occurred_at).toMatchObject(timestampOfMs(1_000));
  expect(end?.detail).toMatchObject({
    value: {
      exit_code: 2,
      command_run: { ...command_run, command_line: `skaffold build --build-env GH_TOKEN=${"*".repeat(token.length)}` },
    },
  });
  expect(tap.reported).toHaveLength(1);
  // The tap that does not know that it was recorded pushes it again.
  await tap.crash(1);
  await tap.settled();
  expect(kinds(log).filter((kind) => kind === "session.ended")).toHaveLength(1);
  expect(kinds(log).filter((kind) => kind === "session.started")).toHaveLength(1);
});

it("a process that is over before its session is decided began with its first frame, and the tap learns of it", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(1_000, "C1", dialled);
  await tap.push(1_010, "C1", frame("a", "700 one"));
  await tap.push(1_020, "C1", frame("b", "720 two"));
  await tap.push(1_050, "C1", closed(true));
  await tap.settled();
  const [begin, end] = ["session.started", "session.ended"].map((kind) =>
    events(log).find((event) => event.kind === kind),
  );
  expect(begin?.occurred_at).toMatchObject(timestampOfMs(700));
  expect(end?.occurred_at).toMatchObject(timestampOfMs(1_050));
  expect(tap.reported).toEqual([begin?.session]);
});

it("a state is recorded when it differs from the last one", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(0, "C1", dialled);
  await tap.push(1, "C1", described("a", "x"));
  await tap.push(10, "C1", frame("a", "1 one"));
  for (const state of ["x", "y", "x"]) await tap.push(700, "C1", described("a", state));
  await tap.push(701, "C1", described("b", "x"));
  // Read back it would be the prototype of all states.
  await tap.push(702, "C1", described("__proto__", "x"));
  await tap.settled();
  const states = events(log).flatMap(({ detail }) =>
    detail?.$case === "session_detail"
      ? Object.entries(detail.value.states).map(([channel, state]) => `${channel}${state}`)
      : [],
  );
  expect(states).toEqual(["ax", "ay", "ax", "bx"]);
  expect(kinds(log).filter((kind) => kind === "session.described")).toHaveLength(4);
});

it("a Handle call's event is marked when it comes back, also after a crash in between", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(0, "C1", dialled);
  await tap.push(10, "C1", frame("a", "1 one"));
  await tap.advance(500);
  await (await tap.recording()).recordFact({
    kind: "control.requested",
    summary: "",
    detail: {
      $case: "control",
      value: {
        method: "handle",
        call: "X",
        who: "",
        request: Buffer.from("custom"),
        code: 0,
        message: "",
        forwarded_method: "handle",
        forwarded_request: Buffer.from("custom"),
      },
    },
  });
  await tap.crash(2);
  for (const text of ["700 custom", "701 custom"]) await tap.push(800, "C1", frame("a", text));
  await tap.crash(2);
  await tap.push(900, "C1", frame("a", "900 custom"));
  await tap.settled();
  expect(events(log).flatMap(({ injected, original }) => (injected ? [original?.bytes.toString()] : []))).toEqual([
    "700 custom",
  ]);
});

describe("labels that change", () => {
  const labels = (log: FakeLog) =>
    events(log).filter(({ kind, detail }) => kind === "session.labelled" && detail?.$case === "session_detail");

  it("are recorded with the time of the loop that has them, or with that of the item", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(500, "C1", labelled({ branch: "", commit: "b2" }, 480));
    await tap.push(600, "C1", labelled({ branch: "fix" }));
    await tap.settled();
    const [session] = sessions(log);
    const upstream = TimeSource.TIME_SOURCE_UPSTREAM;
    const observed = TimeSource.TIME_SOURCE_OBSERVED;
    expect(labels(log)).toMatchObject([
      {
        session,
        summary: "labels: no branch, commit b2",
        time_source: upstream,
        occurred_at: timestampOfMs(480),
        observed_at: timestampOfMs(500),
        detail: { value: { labels: { branch: "", commit: "b2" } } },
      },
      { session, summary: "labels: branch fix", time_source: observed, occurred_at: timestampOfMs(600) },
    ]);
  });

  it("wait until the session is known, and are nothing without one", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(1, "C1", labelled({ branch: "fix" }));
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(600, "C1", closed(true));
    // It comes after all is over.
    await tap.push(601, "C1", labelled({ branch: "late" }));
    await tap.push(700, "C2", dialled);
    await tap.push(701, "C2", labelled({ branch: "none" }));
    await tap.push(702, "C2", closed(true));
    await tap.settled();
    expect(labels(log).map(({ summary, session }) => [summary, session])).toEqual([
      ["labels: branch fix", [...sessions(log)][0]],
    ]);
  });
});

it("an item of a kind that is not known is nothing, and what follows is recorded", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(0, "C1", dialled);
  await tap.push(10, "C1", frame("a", "1 one"));
  // An item of a later version is decoded like this.
  await tap.push(11, "C1", undefined);
  await tap.push(500, "C1", frame("a", "2 two"));
  await tap.settled();
  expect(texts(log, "a")).toEqual(["1 one", "2 two"]);
});

it("whatever is pushed again after a crash adds nothing", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  const script: [number, string, What][] = [
    [0, "C1", dialled],
    [1, "C1", described("a", "x")],
    [10, "C1", frame("a", "1 one")],
    [11, "C1", frame("b", "2 two")],
    [500, "C1", frame("a", "garbage")],
    [500, "C1", frame("a", "garbage")],
    [550, "C1", labelled({ branch: "fix" }, 540)],
    [600, "C1", described("a", "y")],
    [601, "C1", { $case: "channel_ended", value: { channel: "b", code: 13, message: "UTF-8", final: true } }],
    [602, "C1", { $case: "dropped", value: { channel: "a", count: 3n, bytes: 30n, reason: "spill_full" } }],
    [603, "C1", described("a", "x")],
    [700, "C1", closed(true)],
    [5_000, "C2", dialled],
    [5_000, "C2", labelled({ branch: "fix" })],
    [5_001, "C2", frame("a", "9 nine")],
    [6_000, "C2", frame("a", "garbage")],
    [6_100, "C2", closed()],
    [7_000, "C3", dialled],
    [7_001, "C3", frame("a", "garbage")],
    [7_002, "C3", frame("a", "9 nine")],
    [7_500, "C3", frame("a", "garbage")],
  ];
  for (const [ms, connection, what] of script) await tap.push(ms, connection, what);
  await tap.advance(9_000);
  await tap.settled();
  const before = events(log);
  for (let from = 1; from <= script.length; from++) {
    await tap.crash(from);
    await tap.advance(9_000);
    await tap.settled();
    expect(events(log)).toEqual(before);
  }
  expect(before.filter(({ observed_at }) => observed_at !== undefined && msOfTimestamp(observed_at) > 9_000)).toEqual(
    [],
  );
});

it("a crash between any two messages leaves nothing out and repeats nothing", async () => {
  const ending: What = {
    $case: "channel_ended",
    value: { channel: "b", code: 13, message: "invalid UTF-8", final: true },
  };
  const play = async () => {
    const log = fakeLog(well);
    const tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(11, "C1", frame("b", "2 two+1"));
    await tap.advance(300);
    await tap.push(400, "C1", frame("a", "3 three"));
    await tap.push(500, "C1", ending);
    await tap.push(600, "C1", frame("a", "4 four"));
    await tap.push(650, "C1", labelled({ branch: "fix" }, 600));
    await tap.push(700, "C1", closed(true));
    await tap.settled();
    return { log, tap };
  };
  const emitted = (log: FakeLog) => ({ own: kinds(log), a: texts(log, "a"), b: texts(log, "b") });
  const whole = await play();
  const expected = emitted(whole.log);
  expect(expected.own.slice(-5)).toEqual([
    ...["upstream.lost", "session.gap", "session.labelled", "upstream.lost", "session.ended"],
  ]);
  await whole.tap[Symbol.asyncDispose]();
  const messages = new Set(whole.log.stored.map(({ seq }) => seq)).size;
  expect(messages).toBeGreaterThan(8);
  for (let kept = 0; kept < messages; kept++) {
    const { log, tap } = await play();
    const seqs = [...new Set(log.stored.map(({ seq }) => seq))];
    const left = log.stored.filter(({ seq }) => seqs.indexOf(seq) < kept);
    (log.stored as unknown[]).splice(0, log.stored.length, ...left);
    await tap.crash(1);
    await tap.advance(800);
    await tap.settled();
    expect(emitted(log), `after ${kept} messages`).toEqual(expected);
    await tap[Symbol.asyncDispose]();
  }
});

describe("a channel whose stream broke", () => {
  const broke = (channel: string, code = 13): What => ({
    $case: "channel_ended",
    value: { channel, code, message: "invalid UTF-8", final: true },
  });
  const filled = (channel: string): What => ({ $case: "channel_filled", value: { channel } });
  const begin = async (tap: ReturnType<typeof testTap>) => {
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(10, "C1", frame("b", "1 one"));
    await tap.advance(300);
    await tap.push(400, "C1", described("b", "before"));
  };
  const gaps = (log: FakeLog) =>
    events(log).flatMap(({ kind, subject, detail }) =>
      kind.startsWith("session.gap") ? [[kind, subject, (detail?.$case === "gap" && detail.value.open) ?? false]] : [],
    );
  const adopted = (log: FakeLog) =>
    events(log).flatMap(({ kind, detail }) =>
      kind === "session.described" && detail?.$case === "session_detail"
        ? [[...Object.entries(detail.value.states).flat().map(String), detail.value.adopted ?? false]]
        : [],
    );

  it("has an open gap until all that it said has come, and what the upstream says of its state is adopted", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await begin(tap);
    await tap.push(500, "C1", broke("b"));
    await tap.push(501, "C1", described("b", "before"));
    await tap.push(502, "C1", described("b", "before"));
    await tap.push(503, "C1", described("a", "of another"));
    await tap.settled();
    expect(gaps(log)).toEqual([["session.gap", "b", true]]);
    expect(adopted(log)).toEqual([
      ["b", "before", false],
      ["b", "before", true],
      ["a", "of another", false],
    ]);
    await tap.push(600, "C1", frame("b", "2 two"));
    await tap.push(600, "C1", filled("a"));
    await tap.push(601, "C1", filled("b"));
    await tap.push(602, "C1", filled("b"));
    await tap.push(603, "C1", described("b", "after"));
    await tap.settled();
    expect(gaps(log)).toEqual([
      ["session.gap", "b", true],
      ["session.gap_filled", "b", false],
    ]);
    expect(texts(log, "b")).toEqual(["1 one", "2 two"]);
    expect(adopted(log).at(-1)).toEqual(["b", "after", false]);
  });

  it("keeps its gap over a reconnect and a crash, and is filled once", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await begin(tap);
    await tap.push(500, "C1", broke("b"));
    await tap.push(501, "C1", closed());
    await tap.push(600, "C2", dialled);
    await tap.push(601, "C2", frame("a", "1 one"));
    await tap.advance(900);
    await tap.push(901, "C2", described("b", "now"));
    await tap.push(902, "C2", filled("b"));
    await tap.settled();
    const before = events(log);
    expect(gaps(log)).toEqual([
      ["session.gap", "b", true],
      ["session.gap_filled", "b", false],
    ]);
    expect(adopted(log).at(-1)).toEqual(["b", "now", true]);
    for (let from = 1; from <= 11; from++) {
      await tap.crash(from);
      await tap.settled();
      expect(events(log)).toEqual(before);
    }
  });

  it("lacks nothing that the upstream does not have, and for good what it does not repeat", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await begin(tap);
    await tap.push(500, "C1", broke("b", 12));
    await tap.push(501, "C1", broke("part"));
    await tap.settled();
    expect(gaps(log)).toEqual([["session.gap", "part", false]]);
  });
});

describe("an answer that events do not show", () => {
  const answer = (log: FakeLog, state: string, more: Partial<Observed> = {}): Observed => {
    const ordinals = Object.fromEntries(
      ["a", "b", "tapedeck"].map((name) => [
        name,
        BigInt(events(log).filter(({ channel }) => channel === name).length),
      ]),
    );
    const [session = ""] = sessions(log);
    return Observed.fromPartial({ source, session, channel: "a", state: Buffer.from(state), ordinals, ...more });
  };
  const adopted = (log: FakeLog) =>
    events(log).flatMap(({ detail }) =>
      detail?.$case === "session_detail" && detail.value.adopted ? [String(detail.value.states.a)] : [],
    );
  const begun = async (tap: ReturnType<typeof testTap>) => {
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.advance(300);
    await tap.settled();
    return tap.recording();
  };

  it("is adopted once at a place", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    const recording = await begun(tap);
    for (const state of ["reset", "reset", "reset again", "reset"]) {
      recording.adopt(answer(log, state));
      await recording.drained();
    }
    expect(adopted(log)).toEqual(["reset", "reset again", "reset"]);
    await tap.push(1_000, "C1", frame("a", "2 two"));
    await tap.settled();
    recording.adopt(answer(log, "reset"));
    await recording.drained();
    expect(adopted(log)).toHaveLength(4);
  });

  it("is of no use when something has come since, or it is of another session", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    const recording = await begun(tap);
    recording.adopt(answer(log, "of another", { session: "01Z" }));
    const before = answer(log, "late");
    await recording.recordFact({ kind: "control.requested", summary: "a call" });
    recording.adopt(before);
    const between = answer(log, "late as well");
    await tap.push(1_000, "C1", frame("a", "2 two"));
    await tap.settled();
    recording.adopt(between);
    await recording.drained();
    expect(adopted(log)).toEqual([]);
    recording.adopt(answer(log, "in time"));
    await recording.drained();
    expect(adopted(log)).toEqual(["in time"]);
  });
});

describe("an end that nobody was there to see", () => {
  const unseen: What = { $case: "closed", value: { reason: "nobody was there", process_ended: true, unseen: true } };
  const ends = (log: FakeLog) => events(log).filter(({ kind }) => kind === "session.ended");

  it("ends the session with a gap, at some time after its last event, once, however often it is reported", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(600, "C1", frame("a", "2 two"));
    await tap.settled();
    // Its successor, of the same name or another one.
    for (const name of ["T", "T", "another"]) {
      await using after = testTap(log, { tap: name });
      await after.push(9_000, "C1", unseen);
      await after.settled();
    }
    expect(kinds(log).slice(-2)).toEqual(["session.gap", "session.ended"]);
    expect(ends(log)).toMatchObject([
      {
        not_before: timestampOfMs(600),
        occurred_at: timestampOfMs(9_000),
        time_source: TimeSource.TIME_SOURCE_INTERVAL,
      },
    ]);
    const [{ detail } = {}] = ends(log);
    expect(detail).toMatchObject({ value: { reason: "process ended while no tap was recording" } });
  });

  it("comes after what was still to be pushed of the connection", async () => {
    const log = fakeLog(well);
    {
      await using tap = testTap(log);
      await tap.push(0, "C1", dialled);
      await tap.push(10, "C1", frame("a", "1 one"));
      await tap.advance(300);
      await tap.settled();
    }
    await using after = testTap(log);
    await after.push(400, "C1", frame("a", "2 two"));
    await after.push(9_000, "C1", unseen);
    await after.settled();
    expect(texts(log, "a")).toEqual(["1 one", "2 two"]);
    expect(ends(log)).toMatchObject([{ not_before: timestampOfMs(400) }]);
    expect(sessions(log).size).toBe(1);
  });

  it("is that of the session before when the last connection had sent nothing yet", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(600, "C1", closed());
    await tap.push(700, "C2", dialled);
    await tap.push(9_000, "C2", unseen);
    await tap.settled();
    expect(ends(log).map(({ session }) => session)).toEqual([...sessions(log)]);
  });

  it("adds nothing to a source that somebody else has recorded since, or nobody ever", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", unseen);
    await tap.settled();
    expect(events(log)).toEqual([]);
    await tap.push(100, "C1", dialled);
    await tap.push(110, "C1", frame("a", "1 one"));
    await tap.advance(400);
    await tap.settled();
    await (await tap.recording())[Symbol.asyncDispose]();
    await using other = testTap(log, { tap: "other" });
    await other.push(1_000, "C2", dialled);
    await other.push(1_010, "C2", frame("a", "1 one"));
    await other.advance(1_300);
    await other.settled();
    const before = log.stored.length;
    await using after = testTap(log);
    await after.push(9_000, "C1", unseen);
    await after.settled();
    expect(log.stored).toHaveLength(before);
  });
});

describe("a tap that had to wait while another one recorded its source", () => {
  const others = async (log: FakeLog, ...frames: readonly string[]) => {
    await using other = testTap(log, { tap: "other" });
    await other.push(1_000, "C2", dialled);
    for (const text of frames) await other.push(1_010, "C2", frame("a", text));
    await other.push(1_600, "C2", closed(true));
    await other.settled();
  };

  it("goes on with its connection, and adds what the other one did not hear of the same process", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(600, "C1", frame("a", "2 two"));
    await tap.settled();
    await (await tap.recording())[Symbol.asyncDispose]();
    await others(log, "1 one", "2 two", "3 three");
    await tap.crash(4);
    await tap.push(700, "C1", frame("a", "3 three"));
    await tap.push(1_700, "C1", frame("a", "4 four"));
    await tap.push(1_800, "C1", closed(true));
    await tap.settled();
    expect(texts(log, "a")).toEqual(["1 one", "2 two", "3 three", "4 four"]);
    expect(sessions(log).size).toBe(1);
    expect(kinds(log).slice(-3)).toEqual(["upstream.restored", "upstream.lost", "session.ended"]);
  });

  it("goes on with its session also when the other one has begun one of its own", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(600, "C1", frame("a", "2 two"));
    await tap.settled();
    await (await tap.recording())[Symbol.asyncDispose]();
    await others(log, "900 another", "901 process");
    await tap.crash(3);
    await tap.push(700, "C1", frame("a", "3 three"));
    await tap.push(1_800, "C1", closed(true));
    await tap.settled();
    const [first] = sessions(log);
    const inFirst = events(log).filter(({ channel, session }) => channel === "a" && session === first);
    expect(inFirst.map(({ ordinal, original }) => [ordinal, original?.bytes.toString()])).toEqual([
      [1n, "1 one"],
      [2n, "2 two"],
      [3n, "3 three"],
    ]);
    // All of it is there: pushed again it is passed over.
    const before = log.stored.length;
    await tap.crash(1);
    await tap.settled();
    expect(log.stored).toHaveLength(before);
  });
});

it("a connection that never shows its session, at a moment that never passes, is a new one after so many frames", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(0, "C1", dialled);
  await tap.push(1, "C1", frame("a", "1 one"));
  await tap.push(600, "C1", closed());
  await tap.push(700, "C2", dialled);
  await tap.push(701, "C2", frame("part", ""));
  await tap.advance(1_000);
  for (let i = 1; i < 1_999; i++) await tap.push(1_000, "C2", frame("part", ""));
  expect((await tap.recording()).waiting).toBe(true);
  await tap.push(1_000, "C2", frame("part", ""));
  expect((await tap.recording()).waiting).toBe(false);
  await tap.settled();
  expect(sessions(log).size).toBe(2);
});

it("a large piece of a repeat leaves the event loop to others", async () => {
  const log = fakeLog(well);
  let turns = 0;
  const seen = new Set<number>();
  const mask = (channel: string, bytes: Uint8Array) => {
    for (const start = performance.now(); performance.now() - start < 1; );
    seen.add(turns);
    return plain.mask(channel, bytes);
  };
  await using tap = testTap(log, { normalizer: { ...plain, mask } });
  await tap.push(0, "C1", dialled);
  // The first piece shows the session.
  for (let ms = 0; ms <= 5_000; ms += 100) await tap.push(ms, "C1", frame("a", `${ms} first`));
  const counting = setInterval(() => turns++, 0);
  for (let i = 0; i < 100; i++) await tap.push(5_100, "C1", frame("a", `${6_000 + i} more`));
  seen.clear();
  await tap.advance(6_000);
  clearInterval(counting);
  expect(seen.size).toBeGreaterThan(5);
});

describe("frames that the file has and the streams did not give", () => {
  const filled = (channel: string): What => ({ $case: "channel_filled", value: { channel } });
  const broken: What = {
    $case: "channel_ended",
    value: { channel: "b", code: 13, message: "string field contains invalid UTF-8", final: true },
  };
  const fromFile: What = { $case: "dialled", value: { address: "file:events", channels: ["a", "b"] } };

  it("fills a channel whose stream broke, and says so once, and of no other", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled);
    await tap.push(10, "C1", frame("a", "1 one"));
    await tap.push(11, "C1", frame("b", "2 two"));
    await tap.push(300, "C1", broken);
    await tap.push(900, "C1", frame("b", "3 three"));
    for (const channel of ["b", "a"]) await tap.push(901, "C1", filled(channel));
    await tap.push(902, "C1", closed(true));
    await tap.settled();
    expect(texts(log, "b")).toEqual(["2 two", "3 three"]);
    const last = ["upstream.lost", "session.gap", "session.gap_filled", "upstream.lost", "session.ended"];
    expect(kinds(log).slice(-5)).toEqual(last);
    const emitted = events(log).find(({ kind }) => kind === "session.gap_filled");
    expect(emitted).toMatchObject({ subject: "b", detail: { $case: "gap", value: { channel: "b" } } });

    await tap.crash(5);
    await tap.settled();
    expect(kinds(log).filter((kind) => kind === "session.gap_filled")).toHaveLength(1);
    expect(texts(log, "b")).toEqual(["2 two", "3 three"]);
  });

  it("is nothing twice where a tap was killed, whatever became of text that is not UTF-8", async () => {
    const log = fakeLog(well);
    {
      await using killed = testTap(log);
      await killed.push(0, "C1", dialled);
      await killed.push(10, "C1", frame("a", "1 one"));
      await killed.push(11, "C1", frame("a", "2 bro\xffken"));
      await killed.advance(300);
      await killed.settled();
    }
    await using next = testTap(log, { tap: "NEXT" });
    await next.push(1, "F", fromFile);
    await next.push(1, "F", frame("a", "1 one"));
    await next.push(2, "F", frame("a", "2 bro\ufffdken"));
    await next.push(3, "F", frame("a", "3 three"));
    await next.push(3, "F", filled("a"));
    await next.push(3, "F", closed(true));
    await next.settled();
    expect(sessions(log).size).toBe(1);
    expect(texts(log, "a")).toEqual(["1 one", "2 bro\xffken", "3 three"]);
    expect(kinds(log).slice(-3)).toEqual(["upstream.restored", "upstream.lost", "session.ended"]);
  });

  it("begins when its first message was said", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(5, "F", fromFile);
    await tap.push(5, "F", frame("a", "5 one"));
    await tap.push(9_000, "F", frame("a", "9000 two"));
    await tap.push(9_000, "F", closed(true));
    await tap.settled();
    const started = events(log).find(({ kind }) => kind === "session.started");
    expect(started?.occurred_at).toMatchObject(timestampOfMs(5));
  });
});

describe("frames that an upgrade masks otherwise", () => {
  /** Masks what the rules before left, and leaves what they masked. */
  const otherwise: typeof plain = {
    ...plain,
    mask(_, bytes) {
      const text = Buffer.from(bytes).toString();
      const masked = text.replaceAll("TOKEN", "*****");
      return { bytes: Buffer.from(masked), redacted: text.split("TOKEN").length - 1 };
    },
  };
  const said = ["1 SECRET one", "2 two", "3 TOKEN three", "4 SECRET TOKEN", "5 SECRET five", "5 SECRET five"];
  const later = "6 TOKEN six";

  async function connected(tap: ReturnType<typeof testTap>, ms: number, connection: string, lines: readonly string[]) {
    await tap.push(ms, connection, dialled);
    for (const [i, line] of lines.entries()) await tap.push(ms + i + 1, connection, frame("a", line));
    await tap.advance(ms + 500);
    await tap.settled();
  }

  it("are recorded once, in one session, when the upstream repeats all after ingest's restart", async () => {
    const log = fakeLog(well);
    {
      await using tap = testTap(log);
      await connected(tap, 0, "C1", said);
      await tap.push(600, "C1", closed());
      await tap.settled();
    }
    const before = texts(log, "a");
    expect(before).toHaveLength(said.length);
    await using tap = testTap(log, { normalizer: otherwise, tap: "T2" });
    await connected(tap, 1_000, "C2", [...said, later]);
    expect(sessions(log).size).toBe(1);
    expect(texts(log, "a")).toEqual([...before, "6 ***** six"]);
  });

  it("are recorded once, too, where the same connection's frames are pushed again", async () => {
    const log = fakeLog(well);
    {
      await using tap = testTap(log);
      await connected(tap, 0, "C1", said);
    }
    const before = texts(log, "a");
    await using tap = testTap(log, { normalizer: otherwise });
    await connected(tap, 0, "C1", [...said, later]);
    expect(sessions(log).size).toBe(1);
    expect(texts(log, "a")).toEqual([...before, "6 ***** six"]);
  });

  it("are known by their masked bytes where the key was lost and the rules are the same", async () => {
    const log = fakeLog(well);
    {
      await using tap = testTap(log);
      await connected(tap, 0, "C1", said);
    }
    await using tap = testTap(log, { key: Buffer.from("another key"), tap: "T2" });
    await connected(tap, 1_000, "C2", said);
    expect(sessions(log).size).toBe(1);
    expect(texts(log, "a")).toHaveLength(said.length);
  });

  it("carry a hash that can't be made of a guess without the key, and others carry none", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await connected(tap, 0, "C1", ["1 SECRET", "2 plain"]);
    const [masked, plainly] = events(log).flatMap(({ channel, original }) => (channel === "a" ? [original] : []));
    const guess = (bytes: string) => createHash("sha256").update(bytes).digest("hex");
    expect(masked?.identity?.toString("hex")).toMatch(/^[0-9a-f]{64}$/);
    expect(masked?.identity?.toString("hex")).not.toBe(guess("1 SECRET"));
    expect(plainly?.identity).toBeUndefined();
    const fingerprint = events(log).find(({ kind }) => kind === "session.identified")?.detail;
    const sha = fingerprint?.$case === "session_detail" ? fingerprint.value.fingerprint_sha256 : undefined;
    expect(sha?.toString("hex")).toBe(guess("2 plain"));
  });
});
