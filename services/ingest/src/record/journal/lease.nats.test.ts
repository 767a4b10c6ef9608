import { jetstreamManager } from "@nats-io/jetstream";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { until } from "@tapedeck/shared/testing/until";
import type { NatsConnection } from "nats";
import { expect, it, onTestFinished, vi } from "vitest";
import { openLeases } from "./lease.ts";
import { LeaseBucket, type Owner } from "./lease-bucket.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const elsewhere = sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" });
/** Nothing runs out, however busy the machine is, and nothing is checked without a reason. */
const calm = {
  ttlMs: 600_000,
  renewMs: 300,
  entryMs: 600_000,
  checkMs: 600_000,
  pollMs: 200,
  timeoutMs: 60_000,
};
/** The leases of a process that is cut off end soon. */
const short = { ...calm, ttlMs: 1_000, timeoutMs: 300 };
const hasty = { ...calm, timeoutMs: 300 };
const never = new AbortController().signal;
const client = (port: number) => connectThroughRestarts(`127.0.0.1:${port}`);

it("one tap has a source, the others wait until it is free", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(nc.nc, "I1", calm);
  await using there = await openLeases(nc.nc, "I2", calm);
  const [one, other] = await Promise.all([here.take(source, "T1"), there.take(source, "T2")]);
  expect([one, other].filter((lease) => lease !== undefined)).toHaveLength(1);
  const [winner, waiting] = one === undefined ? [other, here] : [one, there];

  let free = false;
  const freed = waiting.freed(source, never).then(() => {
    free = true;
  });
  expect(free).toBe(false);
  await winner?.[Symbol.asyncDispose]();
  await freed;
  expect(await waiting.take(source, "T3")).toBeDefined();
});

it("the same tap takes its source over at once, and the one that had it learns of that", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(nc.nc, "I1", calm);
  await using there = await openLeases(nc.nc, "I2", calm);
  const before = await here.take(source, "T1");
  const after = await there.take(source, "T1");
  expect(after).toBeDefined();
  await until(() => before?.lost.aborted, { message: "the first one to notice" });
  expect(after?.lost.aborted).toBe(false);
  expect(await here.take(source, "T2")).toBeUndefined();
});

it("an examination gives way to a tap of any ingest, and gets no source that a tap has", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(nc.nc, "I1", calm);
  await using there = await openLeases(nc.nc, "I2", calm);
  for (const leases of [here, there]) {
    const examined = await here.take(source, "E1", { yields: true });
    expect(examined).toBeDefined();
    expect(await there.take(source, "E2", { yields: true })).toBeUndefined();
    await leases.freed(source, never);
    const tapped = await leases.take(source, "T1");
    expect(tapped).toBeDefined();
    await until(() => examined?.lost.aborted, { message: "the examiner to notice" });
    await examined?.[Symbol.asyncDispose]();
    expect(await here.take(source, "E1", { yields: true })).toBeUndefined();
    expect(tapped?.lost.aborted).toBe(false);
    await tapped?.[Symbol.asyncDispose]();
  }
});

it("in one process a tap shares its lease, and it is free when the last has left", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using leases = await openLeases(nc.nc, "I1", calm);
  const [one, two] = await Promise.all([leases.take(source, "T1"), leases.take(source, "T1")]);
  await one?.[Symbol.asyncDispose]();
  await one?.[Symbol.asyncDispose]();
  expect(await leases.take(source, "T2")).toBeUndefined();
  await two?.[Symbol.asyncDispose]();
  expect(await leases.take(source, "T2")).toBeDefined();
});

it("a killed process frees all that it had after its time", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(cut.nc, "I1", short);
  await using there = await openLeases(nc.nc, "I2", calm);
  for (const one of [source, elsewhere]) await until(() => here.take(one, "T1"), { message: "the lease" });
  proxy.away = true;
  for (const one of [source, elsewhere]) {
    await there.freed(one, never);
    expect(await there.take(one, "T2")).toBeDefined();
  }
});

it("a process that was cut off keeps what nobody took, and learns what another one took when it is back", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(cut.nc, "I1", short);
  await using there = await openLeases(nc.nc, "I2", calm);
  const taken = await until(() => here.take(source, "T1"), { message: "the lease" });
  const kept = await until(() => here.take(elsewhere, "T1"), { message: "the other lease" });
  proxy.away = true;
  await there.freed(source, never);
  await using after = await there.take(source, "T2");
  expect({ isTaken: after !== undefined, lost: taken.lost.aborted }).toEqual({ isTaken: true, lost: false });
  proxy.away = false;
  await until(() => taken.lost.aborted, { message: "the loss to be noticed" });
  const bucket = await LeaseBucket.open(nc.nc, "I3", calm);
  await until(async () => (await bucket.ownerOf(elsewhere)).owner?.tap === "T1", { message: "the process to be back" });
  expect(kept.lost.aborted).toBe(false);
  expect((await bucket.ownerOf(source)).owner?.tap).toBe("T2");
});

it("a loss during a break of the connection is noticed at the next one, before any renewal", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(cut.nc, "I1", { ...hasty, renewMs: 600_000 });
  await using there = await openLeases(nc.nc, "I2", calm);
  const lease = await until(() => here.take(source, "T1"), { message: "the lease" });
  proxy.away = true;
  await using _after = await there.take(source, "T1");
  expect(lease.lost.aborted).toBe(false);
  proxy.away = false;
  await until(() => lease.lost.aborted, { message: "the loss to be noticed" });
});

it("a restart of NATS changes nothing for the holder", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(nc.nc, "I1", hasty);
  await using there = await openLeases(nc.nc, "I2", hasty);
  await using closed = await openLeases(cut.nc, "I3", short);
  const lease = await until(() => here.take(source, "T1"), { message: "the lease" });
  const revision = await revisionOfProcess(nc.nc);
  const stop = new AbortController();
  let freed = false;
  const watching = there.freed(source, stop.signal).then(() => {
    freed = !stop.signal.aborted;
  });
  await nats.kill();
  await nats.restart();
  await until(async () => (await there.take(source, "T2")) === undefined, { message: "NATS to answer" });
  const before = await revision();
  await until(async () => (await revision()) > before, { message: "a renewal" });
  // A lease that was taken after all that, and is not renewed, runs out.
  await until(() => closed.take(elsewhere, "T3"), { message: "the other client to be back" });
  proxy.away = true;
  await there.freed(elsewhere, never);
  expect({ freed, lost: lease.lost.aborted }).toEqual({ freed: false, lost: false });
  stop.abort();
  await watching;
});

it("a renewal whose answer was lost ends nothing, and what was taken meanwhile is noticed", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(cut.nc, "I1", hasty);
  await using there = await openLeases(nc.nc, "I2", { ...calm, renewMs: 600_000 });
  const lease = await until(() => here.take(source, "T1"), { message: "the lease" });
  const kept = await until(() => here.take(elsewhere, "T1"), { message: "the other lease" });
  const revision = await revisionOfProcess(nc.nc);
  proxy.deaf = true;
  await using _after = await there.take(source, "T1");
  // The second renewal begins when the first one has failed.
  for (const renewal of ["a renewal", "the next one"]) {
    const before = await revision();
    await until(async () => (await revision()) > before, { message: renewal });
  }
  expect(lease.lost.aborted).toBe(false);
  proxy.deaf = false;
  await until(() => lease.lost.aborted, { message: "the loss to be noticed" });
  const renewed = await revision();
  await until(async () => (await revision()) > renewed, { message: "a renewal after that" });
  expect(kept.lost.aborted).toBe(false);
});

it("a thousand sources cost a process one message for each renewal", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using leases = await openLeases(nc.nc, "I1", calm);
  const developers = Array.from({ length: 1_000 }, (_, number) => `dev-${number}`);
  const sources = developers.map((developer) =>
    sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" }),
  );
  const taken = await Promise.all(sources.map((one) => leases.take(one, "T1")));
  expect(taken.filter((lease) => lease !== undefined)).toHaveLength(1_000);
  const written: string[] = [];
  nc.nc.subscribe("$KV.TAPEDECK_OWNERS.>", { callback: (_err, { subject }) => void written.push(subject) });
  await until(() => written.filter((subject) => subject.includes("process/")).length >= 10, { message: "renewals" });
  expect(new Set(written).size).toBe(1);
});

it("a process has a key before its first source, and until it has none", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  const written: string[] = [];
  nc.nc.subscribe("$KV.TAPEDECK_OWNERS.>", {
    callback: (_err, { subject, data }) => void written.push(`${data.length > 0} ${subject.replace(/.*OWNERS\./, "")}`),
  });
  await using leases = await openLeases(nc.nc, "I1", { ...calm, renewMs: 50 });
  const lease = await leases.take(source, "T1");
  const [[key = ""] = []] = await processes(nc.nc);
  expect(written[0]).toBe(`true ${key}`);
  expect(written).toContain(`true ${source}`);
  await lease?.[Symbol.asyncDispose]();
  await until(() => written.at(-1) === `false ${key}`, { message: "the key to be cleared" });
  // It begins again, and what is closed leaves nothing that counts.
  expect(await leases.take(source, "T1")).toBeDefined();
  expect(await processes(nc.nc)).toHaveLength(1);
  await leases[Symbol.asyncDispose]();
  expect(await processes(nc.nc)).toEqual([]);
  expect(written.slice(-2).toSorted()).toEqual([`false ${source}`, `false ${key}`].toSorted());
});

it("a process that is killed at any step keeps nobody from a source for longer than its time", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using leases = await openLeases(nc.nc, "I2", calm);
  const dead = await LeaseBucket.open(nc.nc, "I1", calm);
  const owner: Owner = { process: dead.process, tap: "T1", lease: "L1" };
  // Before its first source.
  await dead.renewProcess();
  const first = await leases.take(source, "T2");
  expect(first).toBeDefined();
  await first?.[Symbol.asyncDispose]();
  // With a source.
  const revision = await dead.write(source, owner, (await dead.read(source)).revision);
  expect(revision).toBeDefined();
  expect(await leases.take(source, "T2")).toBeUndefined();
  expect(await leases.ownedIn("acme")).toEqual([source]);
  await dead.endProcess();
  expect(await leases.ownedIn("acme")).toEqual([]);
  await leases.freed(source, never);
  const lease = await leases.take(source, "T2");
  expect(lease).toBeDefined();
  // What it had still to release is not its own any more.
  await dead.clear(source, owner.lease, revision);
  expect((await dead.ownerOf(source)).owner?.tap).toBe("T2");
  expect(lease?.lost.aborted).toBe(false);
});

it("one of two processes gets the source of a dead one", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using other = disposable(await client(nats.port));
  await using here = await openLeases(nc.nc, "I1", calm);
  await using there = await openLeases(other.nc, "I2", calm);
  const dead = await LeaseBucket.open(nc.nc, "I3", calm);
  for (let round = 0; round < 20; round++) {
    const { revision } = await dead.read(source);
    await dead.write(source, { process: dead.process, tap: "T", lease: `L${round}` }, revision);
    const leases = await Promise.all([here.take(source, "T1"), there.take(source, "T2")]);
    const [winner, ...others] = leases.filter((lease) => lease !== undefined);
    expect([winner?.lost.aborted, others]).toEqual([false, []]);
    await winner?.[Symbol.asyncDispose]();
  }
});

it("a source that could not be released, or whose taking had no answer, is free although its process lives", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(cut.nc, "I1", { ...calm, timeoutMs: 2_000 });
  await using there = await openLeases(nc.nc, "I2", calm);
  await until(() => here.take(elsewhere, "T1"), { message: "the lease that keeps the process alive" });
  const lease = await until(() => here.take(source, "T1"), { message: "the lease" });
  proxy.away = true;
  await lease[Symbol.asyncDispose]();
  expect(await there.take(source, "T2")).toBeUndefined();
  proxy.away = false;
  const taken = await until(() => there.take(source, "T2"), { message: "the source to be free" });
  await taken[Symbol.asyncDispose]();

  let wasWritten = false;
  proxy.lateMs = 300;
  const subscription = nc.nc.subscribe(`$KV.TAPEDECK_OWNERS.${source}`, {
    callback: () => {
      wasWritten = true;
      proxy.away = true;
      subscription.unsubscribe();
    },
  });
  const refused = () =>
    here.take(source, "T1").then(
      () => false,
      () => wasWritten,
    );
  await until(refused, { message: "the answer to be lost" });
  expect(await there.take(source, "T2")).toBeUndefined();
  proxy.lateMs = 0;
  proxy.away = false;
  await until(() => there.take(source, "T2"), { message: "the source to be free again" });
});

it("the write of another owner is checked until it must have been stored, and a refused one changes nothing", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using leases = await openLeases(nc.nc, "I1", calm);
  const other = await LeaseBucket.open(nc.nc, "I2", calm);
  const lease = await leases.take(source, "T1");
  let reads = 0;
  nc.nc.subscribe("$JS.API.STREAM.MSG.GET.KV_TAPEDECK_OWNERS", { callback: () => void reads++ });
  const owner: Owner = { process: other.process, tap: "T1", lease: "L2" };
  expect(await other.write(source, owner, 0)).toBeUndefined();
  await until(() => reads >= 4, { message: "the checks" });
  expect(lease?.lost.aborted).toBe(false);
});

it("a holder checks its source now and then, and renews a key that is old or absent", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  const times = { ...calm, renewMs: 600_000, timeoutMs: 300, checkMs: 100 };
  await using here = await openLeases(cut.nc, "I1", { ...times, entryMs: 10_000 });
  await using there = await openLeases(nc.nc, "I2", calm);
  const bucket = await LeaseBucket.open(nc.nc, "I3", calm);
  const lease = await until(() => here.take(source, "T1"), { message: "the lease" });
  const entry = await bucket.read(source);
  const renewed = await until(
    async () => {
      const now = await bucket.read(source);
      return now.revision > entry.revision && now;
    },
    { message: "the key to be written again" },
  );
  expect(renewed.owner).toEqual(entry.owner);
  const jsm = await jetstreamManager(nc.nc);
  await jsm.streams.purge("KV_TAPEDECK_OWNERS", { filter: `$KV.TAPEDECK_OWNERS.${source}` });
  await until(async () => (await bucket.read(source)).owner?.tap === "T1", { message: "the key to be back" });
  // Another one takes it unheard, between two renewals of the process.
  proxy.deaf = true;
  await using _after = await there.take(source, "T1");
  expect(lease.lost.aborted).toBe(false);
  proxy.deaf = false;
  await until(() => lease.lost.aborted, { message: "the loss to be noticed" });
});

it("the sources of a workspace are no other keys, whatever the workspace is called", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using leases = await openLeases(nc.nc, "I1", calm);
  const names = ["import", "log-check", "process", "李"];
  const sources = new Map<string, SourceName>();
  for (const workspace of names) {
    await leases.take(`import/${workspace}/01import`, "T1");
    await leases.take(`log-check/${workspace}`, "T1");
    expect(await leases.ownedIn(workspace)).toEqual([]);
    const one = sourceName({ workspace, developer: workspace, project: "process", upstream: "skaffold" });
    sources.set(workspace, one);
    await leases.take(one, "T1");
  }
  for (const [workspace, one] of sources) expect(await leases.ownedIn(workspace)).toEqual([one]);
});

it("a source is free when it was found so twice in a row", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using leases = await openLeases(nc.nc, "I1", { ...calm, pollMs: 1 });
  const owners = [undefined, { process: "P2", tap: "T2", lease: "L2" }, undefined, undefined];
  const ownerOf = vi.spyOn(LeaseBucket.prototype, "ownerOf");
  onTestFinished(() => ownerOf.mockRestore());
  for (const owner of owners) ownerOf.mockResolvedValueOnce({ owner, revision: 1 });
  await leases.freed(source, never);
  expect(ownerOf).toHaveBeenCalledTimes(owners.length);
});

const disposable = (nc: Awaited<ReturnType<typeof client>>) => ({ nc, [Symbol.asyncDispose]: () => nc.close() });

/** The keys of processes that live, with their revisions. */
async function processes(nc: NatsConnection): Promise<readonly (readonly [key: string, revision: number])[]> {
  const { streams } = await jetstreamManager(nc);
  const { state } = await streams.info("KV_TAPEDECK_OWNERS", { subjects_filter: "$KV.TAPEDECK_OWNERS.*" });
  const keys = Object.keys(state.subjects ?? {}).filter((subject) => subject.includes(".process/"));
  const last = await Promise.all(
    keys.map((subject) => streams.getMessage("KV_TAPEDECK_OWNERS", { last_by_subj: subject })),
  );
  return last
    .filter((message) => message !== null && message.data.length > 0)
    .map((message) => [message?.subject.replace("$KV.TAPEDECK_OWNERS.", "") ?? "", message?.seq ?? 0]);
}

/** The revision of the only process that there is, from now on. */
async function revisionOfProcess(nc: NatsConnection): Promise<() => Promise<number>> {
  const [[mine = ""] = []] = await processes(nc);
  return async () => new Map(await processes(nc)).get(mine) ?? 0;
}
