import { setImmediate as setImmediateTurn } from "node:timers/promises";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { normalizer } from "../../normalize/skaffold/normalizer.ts";
import { openSessionRecorder, type SessionRecorder } from "../session/session-recorder.ts";
import { type FakeLog, fakeLog } from "../testing/fake-log.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

type What = NonNullable<Item["what"]>;
const dialled: What = { $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["v1", "v2"] } };
const closed: What = { $case: "closed", value: { reason: "cut", process_ended: false } };

/** Printed at a moment (ms) by a task. */
function printed(ms: number, task_id: string, message: string): What {
  const event = V2Event.fromPartial({
    timestamp: timestampOfMs(ms),
    event_type: { $case: "skaffoldLogEvent", value: { task_id, subtask_id: "web", level: 3, message } },
  });
  return { $case: "frame", value: { channel: "v2", bytes: Buffer.from(V2Event.encode(event).finish()), more: false } };
}

function testTap(log: FakeLog) {
  const items: Item[] = [];
  const open = (first_index: bigint) =>
    openSessionRecorder({
      log: { writer: log, reader: log.reader },
      source,
      normalizer: normalizer,
      signal: new AbortController().signal,
      hello: {
        developer: "Alice",
        project: "Shop",
        upstream: "skaffold",
        tap: "T",
        labels: {},
        redact: "on",
        first_index,
        settings: {},
      },
    });
  let recording: Promise<SessionRecorder> = open(1n);
  return {
    async push(ms: number, connection: string, ...all: readonly What[]) {
      for (const what of all) {
        const item: Item = { index: BigInt(items.length + 1), connection, at: timestampOfMs(ms), what };
        items.push(item);
        await (await recording).take(item);
      }
    },
    async settled() {
      const session = await recording;
      await until(() => session.committed() === BigInt(items.length), { message: "all to be committed" });
    },
    /** Kills the recorder; another one gets everything from an index on again. */
    async crash(from: number) {
      await (await recording)[Symbol.asyncDispose]();
      recording = open(BigInt(from));
      for (const item of items.slice(from - 1)) await (await recording).take(item);
    },
    [Symbol.asyncDispose]: async () => (await recording)[Symbol.asyncDispose](),
  };
}

function messages(log: FakeLog): readonly string[] {
  return log.recorded().flatMap(({ event: { channel, part, original, detail } }) => {
    if (channel !== "v2" || part !== 0 || original === undefined) return [];
    const { event_type: reported } = V2Event.decode(original.bytes);
    const message = reported?.$case === "skaffoldLogEvent" ? reported.value.message : "";
    if (message.length < 1_000) expect(detail?.$case === "text" && detail.value.text).toBe(message);
    return [message];
  });
}

const well = () => ({ lands: "now", answers: true }) as const;
const cut = (ms: number) => [
  printed(ms, "Build-1", "pushing with ghp_abcdefghij"),
  printed(ms + 1, "Deploy-1", "klmnopqrstuvwxyz0123456789 is no token\n"),
  printed(ms + 2, "Build-1", "klmnopqrstuvwxyz0123456789 to the registry, DB_PASS"),
  printed(ms + 3, "Build-1", "WORD=hunter2\n"),
];
const masked = [
  `pushing with ghp_${"*".repeat(10)}`,
  "klmnopqrstuvwxyz0123456789 is no token\n",
  `${"*".repeat(26)} to the registry, DB_PASS`,
  "WORD=*******\n",
];

describe("a secret that two frames of one output share", () => {
  it("is masked in both, live and in a repeat", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled, printed(0, "Build-1", "begin\n"), ...cut(1));
    await tap.push(1_000, "C1", printed(1_000, "Build-1", "live\n"), ...cut(1_001));
    await tap.settled();
    expect(messages(log)).toEqual(["begin\n", ...masked, "live\n", ...masked]);
  });

  it("is masked when the recorder is killed between the two, and nothing comes twice", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled, printed(0, "Build-1", "begin\n"));
    await tap.push(1_000, "C1", ...cut(1_000).slice(0, 3));
    await tap.settled();
    await tap.crash(5);
    await tap.push(1_010, "C1", ...cut(1_000).slice(3));
    await tap.settled();
    expect(messages(log)).toEqual(["begin\n", ...masked]);
  });

  it("is known again by another connection, which repeats all", async () => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    const all = [printed(0, "Build-1", "begin\n"), ...cut(1_000)];
    await tap.push(0, "C1", dialled, ...all.slice(0, 1));
    await tap.push(1_000, "C1", ...all.slice(1));
    await tap.push(2_000, "C1", closed);
    await tap.push(3_000, "C2", dialled, ...all, printed(2_500, "Build-1", "more\n"));
    await tap.push(4_000, "C2", printed(4_000, "Build-1", "end\n"));
    await tap.settled();
    expect(messages(log)).toEqual(["begin\n", ...masked, "more\n", "end\n"]);
  });
});

it("a frame of megabytes is masked in another thread", async () => {
  const log = fakeLog(well);
  await using tap = testTap(log);
  await tap.push(0, "C1", dialled, printed(0, "Build-1", "begin\n"));
  await tap.push(1_000, "C1", printed(1_000, "Build-1", "live\n"));
  await tap.settled();
  const [alone, after] = [vi.spyOn(normalizer, "mask"), vi.spyOn(normalizer, "maskAfter")];
  onTestFinished(() => void vi.restoreAllMocks());
  await tap.push(2_000, "C1", printed(2_000, "Build-1", "token=hunter2 key ".repeat(60_000)));
  await tap.settled();
  expect(messages(log).at(-1)).toBe("token=******* key ".repeat(60_000));
  const here = [...alone.mock.calls, ...after.mock.calls].map(([, bytes]) => bytes.byteLength);
  expect(Math.max(0, ...here)).toBeLessThan(100_000);
});

/** A frame of 4 MB. */
const large = (piece: string) => printed(2_000, "Build-1", piece.repeat(4_000_000 / piece.length));

// Masking such a frame at once takes about a second; a turn that only hands it on takes 10 ms, and ten times that where
// garbage is collected in it.
describe("a frame of 4 MB holds the event loop for a fraction of the time that its masking can take", () => {
  let maskingMs = 0;
  beforeAll(() => {
    const frame = large("token=hunter2 key ");
    if (frame.$case !== "frame") throw new Error(`${frame.$case} is no frame`);
    const before = process.threadCpuUsage();
    normalizer.mask(frame.value.channel, frame.value.bytes);
    const { user, system } = process.threadCpuUsage(before);
    maskingMs = (user + system) / 1_000;
  });

  it.each([
    ["one line", "token=hunter2 key "],
    ["many lines", "token=hunter2 key\n"],
    ["one word", "QWxhZGRpbjpvcGVuIHNlc2FtZQ"],
  ])("%s", async (_, piece) => {
    const log = fakeLog(well);
    await using tap = testTap(log);
    await tap.push(0, "C1", dialled, printed(0, "Build-1", "begin\n"));
    await tap.push(1_000, "C1", printed(1_000, "Build-1", piece.repeat(100_000 / piece.length)));
    await tap.settled();
    const turns = turnsOfEventLoop();
    await tap.push(2_000, "C1", large(piece));
    await tap.settled();
    expect(await turns.longestMs()).toBeLessThan(maskingMs / 4);
  });
});

/** How much of a processor each turn of the event loop takes, however busy the machine is with other things. */
function turnsOfEventLoop() {
  let before = process.threadCpuUsage();
  let longest = 0;
  const measure = () => {
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, user + system);
    before = process.threadCpuUsage();
    next = setImmediate(measure);
  };
  let next = setImmediate(measure);
  return {
    async longestMs() {
      await setImmediateTurn();
      clearImmediate(next);
      return longest / 1_000;
    },
  };
}
