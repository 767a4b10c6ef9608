import { jetstreamManager } from "@nats-io/jetstream";
import { endSubjects, endsStream, everyEndSubject } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import { openTestEnds } from "../../testing/test-ends.ts";
import { ensureEnds, openEnds } from "./ends.ts";

const epoch = "t3k9x2";
const cursor = { session: "01KE3M9Z6Q4W8T2V5X7Y9A1B3C", ordinals: { v1: 1 }, frames: { v1: 1 } };
const sourcesOf = (count: number) =>
  Array.from(
    { length: count },
    (_, number): SourceName =>
      sourceName({ workspace: "default", developer: `dev-${number}`, project: "shop", upstream: "skaffold" }),
  );
const sources = sourcesOf(100);

it("the ends of many sources are written a few at a time", async () => {
  await using nats = await startTestNats({ syncAlways: true });
  const watching = await connect({ servers: nats.url });
  const nc = await connect({ servers: nats.url });
  const ends = await openTestEnds(nc, { workspace: "default", epoch, everyMs: 100 });
  let [underWay, max] = [0, 0];
  const written: string[] = [];
  watching.subscribe(endSubjects("default").sources, {
    callback: (_err, { subject }) => {
      written.push(subject);
      max = Math.max(max, ++underWay);
    },
  });
  watching.subscribe("_INBOX.>", {
    callback: () => {
      underWay--;
    },
  });
  await watching.flush();

  const publish = (seq: number) => {
    for (const source of sources) ends.reached(source, seq, cursor);
  };
  publish(1);
  await until(() => new Set(written).size === sources.length, { message: "each to be written" });
  publish(2);
  await until(() => written.length >= 2 * sources.length, { message: "each to be written again" });
  // The watcher may hear of an answer after what was written next.
  expect(max).toBeLessThan(10);
  await ends[Symbol.asyncDispose]();
  await Promise.all([nc.close(), watching.close()]);
});

it("of a source that goes on not every end is written, but the last one", async () => {
  await using nats = await startTestNats();
  const watching = await connect({ servers: nats.url });
  const nc = await connect({ servers: nats.url });
  await ensureEnds(nc);
  const written: number[] = [];
  watching.subscribe(endSubjects("default").sources, {
    callback: (_err, message) => {
      written.push(message.json<{ seq: number }>().seq);
    },
  });
  await watching.flush();
  const [source] = sources as [SourceName];
  {
    await using ends = await openEnds(nc, { workspace: "default", epoch, everyMs: 600_000 });
    ends.reached(source, 1, cursor);
    await until(() => written.length === 1, { message: "the first one to be written" });
    for (let seq = 2; seq <= 9; seq++) {
      ends.reached(source, seq, cursor);
      await nc.flush();
    }
  }
  await watching.flush();
  expect(written).toEqual([1, 9]);
  await Promise.all([nc.close(), watching.close()]);
});

it("an end that another process forgets is forgotten by the one that wrote it", async () => {
  await using nats = await startTestNats();
  const nc = await connect({ servers: nats.url });
  const [source] = sources as [SourceName];
  await using ends = await openTestEnds(nc, { workspace: "default", epoch, everyMs: 1 });
  await using other = await openTestEnds(nc, { workspace: "default", epoch });
  ends.reached(source, 7, cursor);
  expect(await ends.endOf(source)).toMatchObject({ seq: 7 });
  await until(async () => (await other.endOf(source)) !== undefined, { message: "the end to be stored" });
  await other.forget((one) => one === source);
  await until(async () => (await ends.all()).size === 0, { message: "the end to be gone" });
  expect(await ends.endOf(source)).toBeUndefined();
  await nc.close();
});

it("closing writes what waits", async () => {
  await using nats = await startTestNats();
  const nc = await connect({ servers: nats.url });
  {
    await using ends = await openTestEnds(nc, { workspace: "default", epoch, everyMs: 600_000 });
    for (const source of sources) ends.reached(source, 7, cursor);
  }
  await using later = await openTestEnds(nc, { workspace: "default", epoch });
  const kept = [...(await later.all()).values()].map(({ seq }) => seq);
  expect(kept).toEqual(sources.map(() => 7));
  await nc.close();
});

it("closing writes the others where one can't be written", async () => {
  await using nats = await startTestNats();
  const nc = await connect({ servers: nats.url });
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  await jsm.streams.add({ name: endsStream, subjects: [everyEndSubject], max_msg_size: 400 });
  // More than are written at once.
  const [first, tooLong, ...others] = sourcesOf(150) as [SourceName, SourceName, ...SourceName[]];
  {
    await using ends = await openTestEnds(nc, { workspace: "default", epoch, everyMs: 600_000 });
    ends.reached(first, 7, cursor);
    ends.reached(tooLong, 7, { ...cursor, session: "long".repeat(100) });
    for (const source of others) ends.reached(source, 7, cursor);
  }
  await using later = await openTestEnds(nc, { workspace: "default", epoch });
  expect(new Set((await later.all()).keys())).toEqual(new Set([first, ...others]));
  await nc.close();
});

it("closing writes many at once: it does not wait for the answers of a few", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  const nc = await connect({ servers: `127.0.0.1:${proxy.port}` });
  const direct = await connect({ servers: nats.url });
  const ends = await openTestEnds(nc, { workspace: "default", epoch, everyMs: 600_000 });
  await using kept = await openTestEnds(direct, { workspace: "default", epoch });
  ends.reached(sources[0] as SourceName, 7, cursor);
  await until(async () => (await kept.all()).size === 1, { message: "the first one to be written" });
  proxy.deaf = true;
  for (const source of sources) ends.reached(source, 7, cursor);
  await ends[Symbol.asyncDispose]();
  expect((await kept.all()).size).toBe(sources.length);
  await Promise.all([nc.close(), direct.close()]);
});

it("closing does not wait for a server that is gone", async () => {
  await using nats = await startTestNats();
  const nc = await connect({ servers: nats.url });
  const ends = await openTestEnds(nc, { workspace: "default", epoch, everyMs: 600_000 });
  await nats.kill();
  for (const source of sources) ends.reached(source, 7, cursor);
  await ends[Symbol.asyncDispose]();
  expect(nc.isClosed()).toBe(false);
  await nc.close();
});
