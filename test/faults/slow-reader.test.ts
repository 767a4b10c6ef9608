import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedMessage, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { sentFrames } from "../harness/ingest-harness.ts";
import { type PausableReader, readers } from "./pausable-readers.ts";
import { startProcesses } from "./processes.ts";
import { framesOf, skaffoldSource, sourceEvents } from "./recorded-events.ts";

/** More than the gateway's ring of the newest events holds, so that a stalled reader falls out of it. */
const events = 5_000;
/** The size of each event's text. */
const textBytes = 4_000;
const slowOfEach = 4;
/**
 * If the gateway buffered what the slow readers don't read, it would hold some 350 MB. It may keep 1 MiB for each; the
 * rest is the ring of the newest events and room for its garbage collector, which uses as much without them.
 */
const maxGrowthMiB = 450;

type Reading = { readonly name: string; readonly reader: PausableReader };

it("a reader that stops reading delays no other reader, costs little memory, and gets everything when it reads again", async () => {
  const recording = flood();
  await using cleanup = new AsyncDisposableStack();
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  const stack = cleanup.use(
    await startProcesses([{ developer: "alice", project: "shop", address: fake.address }], {
      // This test does not concern rows of text.
      TAPEDECK_QUERY_TEXT_ROWS: "false",
    }),
  );
  const all = sourceEvents(stack.log, skaffoldSource("alice"));
  await fake.playUntil({ v2: 100 });
  await until(async () => framesOf(await all(), "v2").length === 100, { message: "the beginning" });

  const open = (count: number) =>
    Object.entries(readers).flatMap(([name, reader]) =>
      Array.from({ length: count }, () => ({ name, reader: cleanup.use(reader(stack)) })),
    );
  const [fast, slow] = [open(1), open(slowOfEach)];
  await until(() => [...fast, ...slow].every(({ reader }) => reader.got.length > 10), { message: "all to read" });
  for (const { reader } of slow) reader.pause();

  const before = await residentMiB(stack.services.gateway.pid);
  let max = before;
  // Resolves only if Skaffold never blocked for good.
  await fake.play();
  expect(fake.health.v2.stalled).toBe(false);
  const isRecorded = async () => framesOf(await all(), "v2").length === recording.messages.v2.length;
  await until(isRecorded, { message: "all to be recorded" });
  const expected = { ids: (await all()).map(({ event: { id } }) => id), frames: sentFrames(recording, "v2") };
  const expectedOf = (name: string) => (name === "gRPC" ? expected.frames : expected.ids);
  const haveAll = async (some: readonly Reading[]) => {
    max = Math.max(max, await residentMiB(stack.services.gateway.pid));
    for (const { name, reader } of some) {
      expect({ name, over: reader.over }).toEqual({ name, over: undefined });
      expect({ name, got: reader.got.length }).toEqual({ name, got: expectedOf(name).length });
    }
    return true;
  };
  await until(() => haveAll(fast), { message: "the others to have everything" });
  const unlike = (some: readonly Reading[]) =>
    some.flatMap(({ name, reader }) => {
      const at = reader.got.findIndex((one, index) => one !== expectedOf(name)[index]);
      return at < 0 ? [] : [`${name} differs at ${at}`];
    });
  expect(unlike(fast)).toEqual([]);
  // They did stop reading: the kernel buffered far less for them than was sent.
  const read = slow.map(({ name, reader }) => reader.got.length / expectedOf(name).length);
  expect(Math.max(...read)).toBeLessThan(0.5);

  for (const { reader } of slow) reader.resume();
  await until(() => haveAll(slow), { message: "the slow ones to have everything", deadlineMs: 300_000 });
  expect(unlike(slow)).toEqual([]);
  console.log(`${expected.ids.length} events, ${slow.length} slow readers, gateway ${before} MiB, at most ${max} MiB`);
  expect(max - before).toBeLessThan(maxGrowthMiB);
}, 600_000);

/** A recorded beginning, then a build that prints continuously. */
function flood(): RecordedUpstream {
  const recording = loadRecording(join(recordings.skaffold, "01-dev-success-3-artifacts-5-iterations"));
  const { v1, v2 } = recording.messages;
  const start = Math.max(...[...v1, ...v2].map(({ at }) => at)) + 1;
  const printed = Array.from({ length: events }, (_, index): RecordedMessage => {
    const at = start + index;
    const text = `${index} `.padEnd(textBytes, "abcdefghij ");
    const message = Event.fromPartial({
      timestamp: { seconds: BigInt(Math.floor(at / 1_000)), nanos: (at % 1_000) * 1_000_000 },
      event_type: {
        $case: "skaffoldLogEvent",
        value: { task_id: "Build-0", subtask_id: "0", message: text },
      },
    });
    return { at, bytes: Buffer.from(Event.encode(message).finish()) };
  });
  return { ...recording, messages: { v1, v2: [...v2, ...printed], logs: [] } };
}

async function residentMiB(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", String(pid)]);
  return Math.round(Number(stdout) / 1_024);
}
