import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { describe, expect, it } from "vitest";
import { sourceName } from "../source.ts";
import { newEvent, publishEach } from "../testing/log-messages.ts";
import { startTestNats } from "../testing/nats.ts";
import { testStream, testWorkspace } from "../testing/test-log.ts";
import { BackupError, backUpLog, restoreLog, type Snapshot } from "./backup.ts";
import { openLog } from "./jetstream.ts";
import { endOf, logStart, offsetOf, sequenceOf } from "./offset.ts";
import { belongsToLog } from "./position.ts";

const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const never = new AbortController().signal;

async function harness() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const nc = stack.adopt(await connect({ servers: nats.url }), (connection) => connection.close());
  const owned = stack.move();
  const open = () => openLog(nc, { workspace: testWorkspace, syncKnown: true });
  return {
    nc,
    /** Appends events, and gives the log's epoch. */
    async write(count: number): Promise<string> {
      await using log = await open();
      const last = (await log.writer.lastOf(alice))?.seq ?? 0;
      const events = Array.from({ length: count }, (_, index) => newEvent(alice, last + index + 1));
      await publishEach(log.writer, alice, events, last);
      return log.epoch;
    },
    async everything() {
      await using log = await open();
      const { lastOffset } = await log.reader.bounds();
      const events = await Array.fromAsync(
        log.reader.history({ afterOffset: logStart, subjects: [] }, lastOffset, never),
      );
      return { epoch: log.epoch, formerEpochs: log.reader.formerEpochs, events };
    },
    async backUp(): Promise<{ snapshot: Snapshot; pieces: Uint8Array[] }> {
      const pieces: Uint8Array[] = [];
      const snapshot = await backUpLog(nc, testWorkspace, async (piece) => void pieces.push(piece));
      return { snapshot, pieces };
    },
    lose: async () => void (await (await jetstreamManager(nc)).streams.delete(testStream)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function* given(pieces: readonly Uint8Array[]) {
  yield* pieces;
}

it("a backup does not have NATS check the log, during which nothing could be recorded", async () => {
  await using on = await harness();
  await on.write(3);
  const requests: unknown[] = [];
  on.nc.subscribe("$JS.API.STREAM.SNAPSHOT.*", { callback: (_, request) => void requests.push(request.json()) });
  await on.backUp();
  expect(requests).toHaveLength(1);
  expect(requests).not.toContainEqual(expect.objectContaining({ jsck: true }));
});

describe("a log restored from a backup", () => {
  it("is the same log under a new epoch, and positions after the backup are foreign to it", async () => {
    await using on = await harness();
    const first = await on.write(300);
    const before = await on.everything();
    const { snapshot, pieces } = await on.backUp();
    await on.write(20);
    await on.lose();

    const restored = await restoreLog(on.nc, testWorkspace, snapshot, given(pieces));
    const after = await on.everything();
    expect(after.events).toEqual(before.events);
    expect(restored).toEqual({ epoch: after.epoch, lastSeq: 300, formerEpochs: [{ epoch: first, lastSeq: 300 }] });
    expect(after.epoch).not.toBe(first);
    const isKnown = (epoch: string, seq: number) => belongsToLog(after, { epoch, offset: offsetOf(seq) });
    expect([isKnown(first, 1), isKnown(first, 300), isKnown(first, 301)]).toEqual([true, true, false]);
    expect(belongsToLog(after, { epoch: first, offset: endOf(300) })).toBe(true);
    expect([isKnown(after.epoch, 400), isKnown("zzzzzz", 1)]).toEqual([true, false]);
  });

  it("can be written, and remembers all former epochs when it is restored again", async () => {
    await using on = await harness();
    const first = await on.write(3);
    const one = await on.backUp();
    await on.lose();
    await restoreLog(on.nc, testWorkspace, one.snapshot, given(one.pieces));
    const second = await on.write(2);
    const two = await on.backUp();
    await on.lose();
    await restoreLog(on.nc, testWorkspace, two.snapshot, given(two.pieces));
    const { formerEpochs, events } = await on.everything();
    expect(events.map(({ offset }) => sequenceOf(offset))).toEqual([1, 2, 3, 4, 5]);
    expect(formerEpochs).toEqual([
      { epoch: first, lastSeq: 3 },
      { epoch: second, lastSeq: 5 },
    ]);
  });

  it("is refused where a log exists or the file is not a backup, and nothing changes", async () => {
    await using on = await harness();
    await on.write(3);
    const { snapshot, pieces } = await on.backUp();
    await expect(restoreLog(on.nc, testWorkspace, snapshot, given(pieces))).rejects.toThrow(
      /NATS refuses: stream name already in use/,
    );
    await expect(
      restoreLog(on.nc, testWorkspace, { ...snapshot, config: { ...snapshot.config, metadata: {} } }, given(pieces)),
    ).rejects.toThrow(BackupError);
    const former = { ...snapshot.config.metadata };
    delete former["tapedeck-format"];
    await expect(
      restoreLog(
        on.nc,
        testWorkspace,
        { ...snapshot, config: { ...snapshot.config, metadata: former } },
        given(pieces),
      ),
    ).rejects.toThrow(/another format \(none\)/);
    expect((await on.everything()).events).toHaveLength(3);
    await on.lose();
    await expect(
      restoreLog(on.nc, testWorkspace, snapshot, given(pieces.slice(1).map((piece) => piece.map((byte) => byte ^ 1)))),
    ).rejects.toThrow(BackupError);
    await restoreLog(on.nc, testWorkspace, snapshot, given(pieces));
    expect((await on.everything()).events).toHaveLength(3);
  });
});
