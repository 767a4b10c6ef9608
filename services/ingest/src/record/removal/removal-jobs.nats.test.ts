import { jetstreamManager } from "@nats-io/jetstream";
import { ErasureStore } from "@tapedeck/shared/log/erasures/erasure-store";
import { endSubjects, endsStream, streamOf, workspaceOfStream } from "@tapedeck/shared/log/subjects";
import { type Removal, WorkspaceStore } from "@tapedeck/shared/log/workspaces/workspace-store";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import type { NatsConnection } from "nats";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import type { OpenStores } from "../../store.ts";
import { storesOn } from "../../testing/opened-store.ts";
import { beginRemoval, followRemoval } from "./begin-removal.ts";
import { RemovalJobs } from "./removal-jobs.ts";

const caller = { who: "alice", kind: "local" } as const;
/** Names that begin alike. */
const others = ["a", "acme-2", "acm"];
const sourceOf = (workspace: string): SourceName =>
  sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });

let server: TestNats;
let stores: OpenStores;
beforeEach(async () => {
  server = await startTestNats();
  onTestFinished(() => server[Symbol.asyncDispose]());
  stores = await storesOn(server.url);
  onTestFinished(() => stores[Symbol.asyncDispose]());
});

/** Two sessions, of which one is being erased, with the end of the source and its key. Resolves with the log's epoch. */
async function record(workspace: string): Promise<string> {
  const { log } = await stores.of(workspace);
  const source = sourceOf(workspace);
  const writer = testWriter(log.writer, source);
  await writer.append(3, { session: `01${workspace}`, channel: "tapedeck", kind: "session.ended" });
  const { lastOffset } = await log.reader.bounds();
  await new ErasureStore(stores.nats).begin({
    source,
    session: `01${workspace}`,
    epoch: log.epoch,
    lastSeq: 1,
    removedSeq: 0,
    removed: 0,
    state: "removing",
    began: new Date().toISOString(),
    ...caller,
  });
  log.ends.reached(source, 3, { session: `01${workspace}`, ordinals: { tapedeck: 3 }, frames: {} });
  const isWritten = async () => (await kept(workspace)).some((subject) => subject.includes(".source."));
  await until(isWritten, { message: "the end of the source to be kept" });
  expect(lastOffset).toBeGreaterThan(0);
  return log.epoch;
}

/** The subjects that are kept beside the log of a workspace. */
async function kept(workspace: string): Promise<readonly string[]> {
  const jsm = await jetstreamManager(stores.nats);
  const info = await jsm.streams.info(endsStream, { subjects_filter: endSubjects(workspace).all });
  return Object.keys(info.state.subjects ?? {});
}

/** Each message of all streams that concerns one of the other workspaces. */
async function ofOthers(): Promise<readonly string[]> {
  const jsm = await jetstreamManager(stores.nats);
  const found: string[] = [];
  for await (const { config, state } of jsm.streams.list()) {
    const own = workspaceOfStream(config.name);
    if (own === "acme" || state.messages === 0 || config.name === "KV_TAPEDECK_OWNERS") continue;
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const message = await jsm.streams.getMessage(config.name, { seq });
      if (message === null || message.data.length === 0) continue;
      const text = `${message.subject} ${new TextDecoder().decode(message.data)}`;
      if (own !== undefined || others.some((name) => text.includes(`.${name}.`) || text.includes(`${name}/`)))
        found.push(`${config.name} ${seq} ${text}`);
    }
  }
  return found;
}

/** A connection of a process that is killed after so many requests. */
function killedAfter(nats: NatsConnection, requests: number): { readonly nats: NatsConnection; wasKilled: boolean } {
  let left = requests;
  const killed = {
    wasKilled: false,
    nats: new Proxy(nats, {
      get(target, name) {
        const value = Reflect.get(target, name, target) as unknown;
        if (typeof value !== "function") return value;
        if (name !== "request") return value.bind(target);
        return async (...args: unknown[]) => {
          killed.wasKilled ||= left <= 0;
          if (left <= 0) throw new Error("killed");
          left -= 1;
          return value.apply(target, args);
        };
      },
    }),
  };
  return killed;
}

type Jobs = AsyncDisposable & { readonly audited: readonly Removal[] };

function start(nats = stores.nats): Jobs {
  const stop = new AbortController();
  const audited: Removal[] = [];
  const { leases, workspaces } = stores;
  const jobs = new RemovalJobs({
    stores: { nats, leases, workspaces, close: (removal) => stores.close(removal) },
    ingest: "test",
    audit: async (removal) => void audited.push(removal),
    logger: silentLogger,
    signal: stop.signal,
  });
  return {
    audited,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await jobs[Symbol.asyncDispose]();
    },
  };
}

const removalOf = async () => (await new WorkspaceStore(stores.nats).removalOf("acme"))?.state;

it("a removal is brought to its end whichever request it is killed after, and touches no other workspace", async () => {
  for (const name of others) await record(name);
  const before = await ofOthers();
  expect(before.length).toBeGreaterThan(15);
  const epochs = new Set<string>();
  let isWhole = false;
  for (let requests = 0; !isWhole; requests += 1) {
    const epoch = await record("acme");
    expect(epochs).not.toContain(epoch);
    epochs.add(epoch);
    await beginRemoval({ workspace: "acme", ...caller }, stores);
    const killed = killedAfter(stores.nats, requests);
    {
      await using _jobs = start(killed.nats);
      await until(async () => killed.wasKilled || (await removalOf()) === "done", { message: "a kill" });
    }
    isWhole = !killed.wasKilled;
    expect(await ofOthers()).toEqual(before);
    await using jobs = start();
    await until(async () => (await removalOf()) === "done", { message: `the removal, killed after ${requests}` });
    expect(jobs.audited.length).toBeLessThanOrEqual(1);
    expect(await kept("acme")).toEqual([]);
    expect((await new ErasureStore(stores.nats).of("01acme"))?.state).toBeUndefined();
    expect(await stores.names()).toEqual(others.toSorted());
    expect(await ofOthers()).toEqual(before);
    // Nothing of the log that is gone is taken for one of the next.
    const { log } = await stores.of("acme");
    expect(epochs).not.toContain(log.epoch);
    expect(await log.ends.all()).toEqual(new Map());
    expect(await log.ends.lastSeq()).toBe(0);
  }
  expect(epochs.size).toBeGreaterThan(10);
});

it("a workspace is not removed while somebody records there, and nobody begins to while it is removed", async () => {
  await record("acme");
  const store = await stores.of("acme");
  const source = sourceOf("acme");
  const jsm = await jetstreamManager(stores.nats);
  const begin = () => beginRemoval({ workspace: "acme", ...caller }, stores);
  const held = await stores.leases.take(source, "tap");
  const refusal = { code: "invalid_argument", message: `${source} is being recorded: end it first` };
  await expect(begin()).rejects.toMatchObject(refusal);
  await held?.[Symbol.asyncDispose]();
  // One of a workspace whose name begins alike, and one that only examines, keep nobody from it.
  await using _theirs = await stores.leases.take(sourceOf("acme-2"), "tap");
  await using _examined = await stores.leases.take(source, "examiner", { yields: true });
  await begin();
  // A recorder that has just taken its lease hears of it, and the removal of that lease.
  await expect(store.assertWhole()).rejects.toMatchObject({ code: "not_ready" });
  const late = await stores.leases.take(source, "tap");
  await using _jobs = start();
  const following = Array.fromAsync(followRemoval("acme", { nats: stores.nats, signal: new AbortController().signal }));
  await expect(following).rejects.toMatchObject(refusal);
  await late?.[Symbol.asyncDispose]();
  expect((await jsm.streams.info(streamOf("acme"))).state.messages).toBe(3);
  await store.assertWhole();
  await begin();
  await until(async () => (await removalOf()) === "done", { message: "the removal" });
  await expect(store.assertWhole()).rejects.toMatchObject({ code: "not_ready" });
  await expect(beginRemoval({ workspace: "never", ...caller }, stores)).rejects.toMatchObject({ code: "not_found" });
});

it("an ingest that surveys the workspaces begins no log in one that is removed meanwhile", async () => {
  await record("acme");
  await using elsewhere = await storesOn(server.url, "other");
  const known = new WorkspaceStore(stores.nats);
  const begun = await beginRemoval({ workspace: "acme", ...caller }, stores);
  await known.advance({ ...begun, state: "removing", epochs: [(await stores.of("acme")).log.epoch] });
  await expect(elsewhere.existing("acme")).rejects.toMatchObject({ code: "not_ready" });
  await expect(elsewhere.of("acme")).rejects.toMatchObject({ code: "not_ready" });
  await using _jobs = start();
  await until(async () => (await removalOf()) === "done", { message: "the removal" });
  expect(await elsewhere.existing("acme")).toBeUndefined();
  expect(await stores.names()).toEqual([]);
  expect((await elsewhere.of("acme")).workspace).toBe("acme");
});

it("another ingest writes nothing more of it, and what it wrote too late counts for nothing", async () => {
  await using elsewhere = await storesOn(server.url, "other");
  const { log } = await elsewhere.of("acme");
  const epoch = await record("acme");
  const source = sourceOf("acme");
  await beginRemoval({ workspace: "acme", ...caller }, stores);
  await using _jobs = start();
  await until(async () => (await removalOf()) === "done", { message: "the removal" });
  await until(() => elsewhere.workspaces.removalOf("acme")?.state === "done", {
    message: "the other one to hear of it",
  });
  log.ends.reached(source, 900, { session: "01acme", ordinals: { tapedeck: 900 }, frames: {} });
  const late = { epoch, seq: 900, cursor: { session: "01acme", ordinals: { tapedeck: 900 }, frames: {} } };
  stores.nats.publish(endSubjects("acme").sources.replace(">", "alice.shop.skaffold"), JSON.stringify(late));
  await stores.nats.flush();
  const again = await elsewhere.of("acme");
  expect(again.log.epoch).not.toBe(epoch);
  expect(await again.log.ends.endOf(source)).toBeUndefined();
  await testWriter(again.log.writer, source).append(1, { session: "01again" });
  await again.assertWhole();
});
