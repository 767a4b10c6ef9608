import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { expect, it } from "vitest";
import { sourceName } from "../../source.ts";
import { testWriter } from "../../testing/log-messages.ts";
import { startTestNats } from "../../testing/nats.ts";
import { testStream, testWorkspace } from "../../testing/test-log.ts";
import { until } from "../../testing/until.ts";
import { openLog } from "../jetstream.ts";
import type { FollowOptions, RecordedEvent } from "../log.ts";
import { logStart, type Offset, sequenceOf } from "../offset.ts";
import { parsePosition } from "../position.ts";
import { endSubjects, endsStream, everyEndSubject, sourceFilter } from "../subjects.ts";
import { encodeHoles, HolesWatch, type KnownHole } from "./known-holes.ts";
import { reportHoles } from "./report-holes.ts";

const named = (developer: string) =>
  sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" });
const [alice, bob] = [named("alice"), named("bob")] as const;

/** A log of its own, with holes that the test knows. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const nc = stack.adopt(await connect({ servers: nats.url }), (one) => one.close());
  const log = stack.use(await openLog(nc, { workspace: testWorkspace, syncKnown: true }));
  const jsm = await jetstreamManager(nc);
  const over = new AbortController();
  stack.defer(() => over.abort());
  const holes: KnownHole[] = [];
  const reader = reportHoles(log.reader, () => holes);
  const owned = stack.move();
  return {
    nc,
    jsm,
    epoch: log.epoch,
    alice: testWriter(log.writer, alice),
    bob: testWriter(log.writer, bob),
    lose: async (source: KnownHole["source"], seq: number) => {
      await jsm.streams.deleteMessage(testStream, seq);
      holes.push({ source, sessions: ["s"], first: seq, last: seq });
    },
    holes,
    async *follow(subjects: readonly string[], options: Partial<FollowOptions> = {}, afterOffset: Offset = logStart) {
      const from = { afterOffset, subjects };
      for await (const batch of reader.followBatches(from, { signal: over.signal, ...options }))
        for (const held of batch) yield sequenceOf((held.decode() as RecordedEvent).offset);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function take(sequences: AsyncGenerator<number, void>, count: number): Promise<number[]> {
  const taken: number[] = [];
  while (taken.length < count) taken.push((await sequences.next()).value as number);
  return taken;
}

it("a follower that has read what was lost later gets no error", async () => {
  await using on = await harness();
  await on.alice.append(5);
  const live = on.follow([]);
  expect(await take(live, 5)).toEqual([1, 2, 3, 4, 5]);
  await on.lose(alice, 3);
  await on.alice.append(1);
  expect(await take(live, 1)).toEqual([6]);
});

it("a follower that has not come to a hole yet learns of it when it becomes known", async () => {
  await using on = await harness();
  await on.alice.append(200);
  const slow = on.follow([]);
  await take(slow, 1);
  await on.lose(alice, 150);
  expect(await take(slow, 148)).toHaveLength(148);
  await expect(take(slow, 1)).rejects.toMatchObject({ code: "out_of_range", details: { loss: "lost" } });
});

it("it ends at the hole where nothing follows that it reads, before it says that it has caught up", async () => {
  await using on = await harness();
  await on.alice.append(5);
  await on.bob.append(5);
  await on.lose(alice, 5);
  const caughtUp: number[] = [];
  const following = on.follow([sourceFilter(alice)], { caughtUp: (offset) => caughtUp.push(offset) });
  expect(await take(following, 4)).toEqual([1, 2, 3, 4]);
  await expect(take(following, 1)).rejects.toMatchObject({ code: "out_of_range" });
  expect(caughtUp).toEqual([]);
  expect(await take(on.follow([sourceFilter(bob)]), 5)).toEqual([6, 7, 8, 9, 10]);
});

it("an empty hole, of a workspace that was moved here, ends a follower once", async () => {
  await using on = await harness();
  await on.alice.append(5);
  on.holes.push({ source: alice, sessions: ["s"], first: 4, last: 3 });
  const following = on.follow([]);
  expect(await take(following, 3)).toEqual([1, 2, 3]);
  const { details } = await take(following, 1).then(
    () => ({ details: {} as { earliest?: string } }),
    (error) => error,
  );
  expect(details).toMatchObject({ loss: "lost", earliest: expect.any(String) });
  const behind = on.follow([], {}, parsePosition(details.earliest ?? "")?.offset);
  expect(await take(behind, 2)).toEqual([4, 5]);
});

it("holes are those that were kept last, of this log", async () => {
  await using on = await harness();
  const hole = { source: alice, sessions: ["S"], first: 2, last: 3 };
  const warned: string[] = [];
  const { nc: nats, epoch } = on;
  const warn = (message: string) => warned.push(message);
  const options = { nats, workspace: testWorkspace, epoch, warn, everyMs: 10 };
  const watch = new HolesWatch(options);
  await watch.loaded;
  expect(watch.now()).toEqual([]);
  await on.jsm.streams.add({
    name: endsStream,
    subjects: [everyEndSubject],
    max_msgs_per_subject: 1,
    allow_direct: true,
  });
  const keep = (epoch: string, holes: readonly KnownHole[]) =>
    jetstream(on.nc).publish(endSubjects(testWorkspace).holes, encodeHoles(epoch, holes));
  await keep(on.epoch, [hole]);
  await until(() => watch.now().length === 1, { message: "the hole" });
  expect(watch.now()).toEqual([hole]);
  await keep("another", [hole]);
  await until(() => watch.now().length === 0, { message: "it to be none of this log's" });
  expect(warned).toEqual([]);
});
