import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { asNow, eventLogLine, writeEventLog } from "@tapedeck/fakes/skaffold/event-log";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { until } from "@tapedeck/shared/testing/until";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { afterAll, describe, expect, it } from "vitest";
import type { TapItem } from "../../tap.ts";
import { Completing } from "./completing.ts";
import { endOf } from "./event-log-offsets.ts";
import { EventLogTail } from "./event-log-tail.ts";

const root = mkdtempSync(join(tmpdir(), "tapedeck-completing-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const never = new AbortController().signal;
const load = (name: string) => {
  const recording = loadRecording(
    fileURLToPath(new URL(`../../../../fakes/recordings/skaffold/${name}`, import.meta.url)),
  );
  const { v1, v2 } = asNow(recording).messages;
  return { v1: v1.map(({ bytes }) => bytes), v2: v2.map(({ bytes }) => bytes) };
};
/** What is loaded happened just before. */
const loadedAt = Date.now();
const process = load("12-skaffold-build-one-shot");
const total = process.v1.length + process.v2.length;

type What = NonNullable<TapItem["what"]>;
const dialled: What = { $case: "dialled", value: { address: "127.0.0.1:1", channels: ["v1", "v2"] } };
const frame = (channel: string, bytes: Buffer): What => ({ $case: "frame", value: { channel, bytes, more: false } });
const closed: What = { $case: "closed", value: { reason: "cut", process_ended: true } };
const broken: What = { $case: "channel_ended", value: { channel: "v2", code: 13, message: "", final: true } };

type HarnessOptions = {
  readonly isOneProcess?: boolean;
  readonly keeps?: (item: TapItem) => boolean;
  readonly from?: { readonly v1: number; readonly v2: number };
  readonly name?: string;
  readonly since?: Timestamp;
};

function harness({ isOneProcess = true, keeps = () => true, from, name = "", since }: HarnessOptions = {}) {
  const path = name || join(mkdtempSync(join(root, "log-")), "events");
  const items: TapItem[] = [];
  const ended = new AbortController();
  const completing = new Completing({
    append: (item) => (keeps(item) ? BigInt(items.push(item)) : undefined),
    tail: new EventLogTail(path, { from }),
    isOneProcess,
    since,
    ended: ended.signal,
  });
  const report = (connection: string, ...whats: What[]) => {
    for (const what of whats) completing.take({ connection, at: undefined, what });
  };
  const of = (channel: string) =>
    items.flatMap(({ what }) => (what?.$case === "frame" && what.value.channel === channel ? [what.value.bytes] : []));
  const kinds = () => items.map(({ what }) => what?.$case).filter((kind) => kind !== "frame");
  return { path, items, completing, report, of, kinds, ended };
}

it("the rest of a stream that broke comes on the same connection, before its end, and nothing twice", async () => {
  const { path, items, completing, report, of, kinds } = harness();
  report("C", dialled, ...process.v1.map((bytes) => frame("v1", bytes)));
  report("C", ...process.v2.slice(0, 9).map((bytes) => frame("v2", bytes)), broken);
  writeEventLog(path, process);
  expect(await completing.finish("C", { exit_code: 0 }, never)).toBe(true);
  report("C", closed);
  expect([of("v1"), of("v2")]).toEqual([process.v1, process.v2]);
  expect(kinds()).toEqual(["dialled", "channel_ended", "channel_filled", "closed"]);
  expect(new Set(items.map(({ connection }) => connection))).toEqual(new Set(["C"]));
});

it("a frame with text that is not UTF-8 is the same as its line with U+FFFD", async () => {
  const { path, items, completing, report, of } = harness();
  const [first, ...rest] = process.v2;
  const torn = Buffer.from(first ?? "");
  torn[torn.indexOf("Starting")] = 0xff;
  report("C", dialled, frame("v2", torn));
  writeEventLog(path, { v1: [], v2: [torn, ...rest] });
  expect(eventLogLine("v2", torn)).toContain("\ufffd");
  await completing.finish("C", { exit_code: 0 }, never);
  expect(of("v2")).toEqual([torn, ...rest]);
  expect(items).toHaveLength(1 + process.v2.length);
});

it("frames that the spill had to drop come from the file", async () => {
  let dropped = 0;
  const { path, completing, report, of, kinds } = harness({
    keeps: ({ what }) => what?.$case !== "frame" || dropped++ !== 3,
  });
  report("C", dialled, ...process.v1.map((bytes) => frame("v1", bytes)));
  expect(of("v1")).toHaveLength(process.v1.length - 1);
  writeEventLog(path, { v1: process.v1, v2: [] });
  await completing.finish("C", { exit_code: 0 }, never);
  expect(of("v1")).toHaveLength(process.v1.length);
  expect(kinds()).toEqual(["dialled", "channel_filled"]);
});

it("a process that nobody has heard is a connection of its own, with its exit code", async () => {
  const { path, items, completing, of, kinds } = harness();
  writeEventLog(path, process);
  await completing.finish(undefined, { exit_code: 3 }, never);
  expect([of("v1"), of("v2")]).toEqual([process.v1, process.v2]);
  expect(kinds()).toEqual(["dialled", "channel_filled", "channel_filled", "channel_filled", "closed"]);
  expect(items.at(-1)?.what).toMatchObject({ value: { process_ended: true, exit_code: 3 } });
});

it("one of a row that was over before the next one's connection comes before it", async () => {
  const { path, items, completing, report, kinds, ended } = harness({ isOneProcess: false });
  const next = load("12b-skaffold-run-one-shot");
  writeEventLog(path, process);
  report("C", dialled, ...next.v1.map((bytes) => frame("v1", bytes)));
  writeEventLog(path, next);
  report("C", closed);
  await until(() => kinds().filter((kind) => kind === "closed").length === 2, { message: "both ends" });
  ended.abort();
  await completing.finish(undefined, { exit_code: 0 }, never);
  const connections = [...new Set(items.map(({ connection }) => connection))];
  expect(connections).toEqual([expect.not.stringMatching("^C$"), "C"]);
  expect(items.filter(({ connection }) => connection !== "C")).toHaveLength(5 + total);
  expect(items.filter(({ connection, what }) => connection === "C" && what?.$case === "frame")).toHaveLength(
    next.v1.length + next.v2.length,
  );
  expect(items.at(-1)).toMatchObject({ connection: "C", what: { $case: "closed" } });
});

it("the user's own file counts from where it ended before, and a line that is still being written not yet", async () => {
  const { path } = harness();
  writeEventLog(path, load("12b-skaffold-run-one-shot"));
  const { completing, of } = harness({ name: path, from: endOf(path) });
  writeEventLog(path, process);
  appendFileSync(path, '{"timestamp":"2026-01-01T00:00:00Z","event":{');
  await completing.finish(undefined, { exit_code: 0 }, never);
  expect([of("v1"), of("v2")]).toEqual([process.v1, process.v2]);
});

it("nothing is emitted of a process that has printed nothing but blank lines", async () => {
  const { path, items, completing } = harness();
  const line = { timestamp: "2026-01-01T00:00:00Z", skaffoldLogEvent: { message: "\n" } };
  appendFileSync(`${path}.v2`, `${JSON.stringify(line)}\n${JSON.stringify(line)}\n`);
  await completing.finish(undefined, { exit_code: 0 }, never);
  expect(items).toEqual([]);
});

/** Lines of a v2 file, each a millisecond after the one before. */
function longLog(path: string, count: number, startMs: number): void {
  const line = (at: number) => {
    const timestamp = new Date(startMs + at).toISOString();
    return `${JSON.stringify({ timestamp, skaffoldLogEvent: { taskId: "Build-0", message: `${at} ${"x".repeat(500)}` } })}\n`;
  };
  appendFileSync(`${path}.v2`, Array.from({ length: count }, (_, at) => line(at)).join(""), { mode: 0o600 });
}

it("the end waits for every reading: nothing comes after it, and nothing twice", async () => {
  const { path, items, completing, report, ended } = harness({ isOneProcess: false });
  const count = 3_000;
  const at = Date.now();
  longLog(path, count, at);
  report("C", dialled);
  report("C", closed, { ...dialled });
  longLog(path, count, at + count);
  ended.abort();
  expect(await completing.finish(undefined, { exit_code: 0 }, never)).toBe(true);
  const reported = items.flatMap(({ what }) => (what?.$case === "frame" ? [what.value.bytes.toString("hex")] : []));
  expect([reported.length, new Set(reported).size]).toEqual([2 * count, 2 * count]);
  const kinds = items.map(({ connection, what }) => `${connection} ${what?.$case}`);
  expect(kinds.filter((kind) => /^C (dialled|closed)/.test(kind))).toEqual(["C dialled", "C closed", "C dialled"]);
  const { length } = items;
  await new Promise((resolve) => setImmediate(resolve));
  expect(items).toHaveLength(length);
});

it("a signal ends a reading wherever it is, and the rest stays in the file", async () => {
  const { path, completing, report, of, ended, kinds } = harness({ isOneProcess: false });
  longLog(path, 20_000, Date.now());
  const stopping = new AbortController();
  report("C", dialled);
  ended.abort();
  const finished = completing.finish(undefined, { exit_code: 0 }, stopping.signal);
  stopping.abort();
  expect(await finished).toBe(false);
  expect([of("v2").length, kinds()]).toEqual([0, ["dialled"]]);
});

it("a file that can't be read is not taken for one that was read", async () => {
  const { path, completing, report, kinds } = harness();
  writeEventLog(path, { v1: process.v1, v2: [] });
  appendFileSync(path, Buffer.from([0xff, 0x0a]));
  report("C", dialled);
  expect(await completing.finish("C", { exit_code: 0 }, never)).toBe(false);
  expect(kinds()).toEqual(["dialled"]);
});

/** The same process, as if it had run that much earlier. */
const earlier = (said: typeof process, byS: bigint) => ({
  v1: said.v1.map((bytes) => {
    const message = LogEntry.decode(bytes);
    const { seconds = 0n, nanos = 0 } = message.timestamp ?? {};
    return Buffer.from(LogEntry.encode({ ...message, timestamp: { seconds: seconds - byS, nanos } }).finish());
  }),
  v2: said.v2.map((bytes) => {
    const message = Event.decode(bytes);
    const { seconds = 0n, nanos = 0 } = message.timestamp ?? {};
    return Buffer.from(Event.encode({ ...message, timestamp: { seconds: seconds - byS, nanos } }).finish());
  }),
});
const inner = load("12b-skaffold-run-one-shot");
/** Began before the inner one, which has written first. */
const outer = earlier(process, 5n);

const hex = (all: readonly Buffer[]) => all.map((bytes) => bytes.toString("hex"));

describe("of a file to which another process has written as well", () => {
  it.each([true, false])(
    "the own part is what shares messages with what was heard (one process: %s)",
    async (isOne) => {
      const { path, completing, items, report, ended, kinds } = harness({ isOneProcess: isOne });
      report("C", dialled, ...outer.v1.map((bytes) => frame("v1", bytes)));
      report("C", ...outer.v2.slice(0, 9).map((bytes) => frame("v2", bytes)), broken);
      writeEventLog(path, inner);
      writeEventLog(path, outer);
      if (!isOne) report("C", closed);
      ended.abort();
      await completing.finish(isOne ? "C" : undefined, { exit_code: 0 }, never);
      const frames = (channel: string) =>
        items.flatMap(({ connection, what }) =>
          connection === "C" && what?.$case === "frame" && what.value.channel === channel ? [what.value.bytes] : [],
        );
      expect(hex(frames("v1"))).toEqual(hex(outer.v1));
      expect(hex(frames("v2"))).toEqual(hex(outer.v2));
      expect(kinds().slice(0, 3)).toEqual(["dialled", "channel_ended", "channel_filled"]);
      // The command is not a Skaffold itself, so each one that it started is recorded.
      expect(kinds().filter((kind) => kind === "closed")).toHaveLength(isOne ? 0 : 2);
    },
  );

  it("the own part of one that nobody has heard is what begins first after the command", async () => {
    const { path, completing, of } = harness({ since: timestampOfMs(loadedAt - 30_000) });
    // Another run with the same file, which began before.
    writeEventLog(path, earlier(inner, 60n));
    writeEventLog(path, inner);
    writeEventLog(path, outer);
    await completing.finish(undefined, { exit_code: 0 }, never);
    expect([hex(of("v1")), hex(of("v2"))]).toEqual([hex(outer.v1), hex(outer.v2)]);
  });

  it("nothing of it is taken when the process that was heard has written nothing", async () => {
    const { path, completing, report, of, kinds } = harness();
    report("C", dialled, ...outer.v1.map((bytes) => frame("v1", bytes)));
    report("C", ...outer.v2.slice(0, 9).map((bytes) => frame("v2", bytes)));
    writeEventLog(path, inner);
    await completing.finish("C", { exit_code: 0 }, never);
    expect([of("v1").length, of("v2").length, kinds()]).toEqual([outer.v1.length, 9, ["dialled"]]);
  });
});
