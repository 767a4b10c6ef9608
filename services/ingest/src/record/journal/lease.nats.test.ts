import { sourceName } from "@tapedeck/shared/source";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it, onTestFinished, vi } from "vitest";
import { renewalWait } from "./held-lease.ts";
import { openLeases } from "./lease.ts";
import { LeaseBucket } from "./lease-bucket.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const elsewhere = sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" });
/** Nothing runs out, however busy the machine is. */
const calm = { ttlMs: 600_000, renewMs: 300, pollMs: 200, timeoutMs: 60_000 };
/** The lease of a tap that is cut off ends soon. */
const short = { ttlMs: 1_000, renewMs: 300, pollMs: 200, timeoutMs: 300 };
/** Longer than a restart of NATS takes. */
const outage = { ...short, ttlMs: 8_000 };
const never = new AbortController().signal;
const client = (port: number) =>
  connect({ servers: `127.0.0.1:${port}`, maxReconnectAttempts: -1, reconnectTimeWait: 20, reconnectJitter: 0 });

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

it("a holder that is cut off loses it after its time, and learns so when it is back", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(cut.nc, "I1", short);
  await using there = await openLeases(nc.nc, "I2", calm);
  const lease = await until(() => here.take(source, "T1"), { message: "the lease" });
  await proxy[Symbol.asyncDispose]();

  await there.freed(source, never);
  expect(await there.take(source, "T2")).toBeDefined();
  expect(lease.lost.aborted).toBe(false);
});

it("a restart of NATS changes nothing for the holder", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(nc.nc, "I1", outage);
  await using there = await openLeases(nc.nc, "I2", outage);
  await using closed = await openLeases(cut.nc, "I3", outage);
  const lease = await until(() => here.take(source, "T1"), { message: "the lease" });
  const stop = new AbortController();
  let freed = false;
  const watching = there.freed(source, stop.signal).then(() => {
    freed = !stop.signal.aborted;
  });
  await nats.kill();
  await nats.restart();
  await until(async () => (await there.take(source, "T2")) === undefined, { message: "NATS to answer" });
  // A lease that was taken after all that, and is not renewed, runs out.
  await until(() => closed.take(elsewhere, "T3"), { message: "the other client to be back" });
  await proxy[Symbol.asyncDispose]();
  await there.freed(elsewhere, never);
  expect({ freed, lost: lease.lost.aborted }).toEqual({ freed: false, lost: false });
  stop.abort();
  await watching;
});

it("a renewal whose answer was lost does not end the renewing", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  await using cut = disposable(await client(proxy.port));
  await using nc = disposable(await client(nats.port));
  await using here = await openLeases(cut.nc, "I1", { ...calm, timeoutMs: 300 });
  const bucket = await LeaseBucket.open(nc.nc, calm.ttlMs, calm.timeoutMs);
  const revision = async () => (await bucket.ownerOf(source)).revision;
  const lease = await until(() => here.take(source, "T1"), { message: "the lease" });
  const taken = await revision();
  proxy.deaf = true;
  await until(async () => (await revision()) > taken, { message: "a renewal" });
  const renewed = await revision();
  proxy.deaf = false;
  proxy.cut();
  await until(async () => (await revision()) > renewed, { message: "the next one" });
  expect(lease.lost.aborted).toBe(false);
});

it("the next renewal is never later than asked, nor sooner than half of that", () => {
  expect([0, 0.5, 1].map((random) => renewalWait(2_000, random))).toEqual([1_000, 1_500, 2_000]);
});

it("leases that are taken together are renewed apart", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using leases = await openLeases(nc.nc, "I1", { ...calm, renewMs: 50 });
  const writes = new Map<string, number>();
  nc.nc.subscribe("$KV.TAPEDECK_OWNERS.>", {
    callback: (_err, { subject }) => {
      writes.set(subject, (writes.get(subject) ?? 0) + 1);
    },
  });
  const developers = Array.from({ length: 20 }, (_, number) => `dev-${number}`);
  await Promise.all(
    developers.map((developer) =>
      leases.take(sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" }), "T1"),
    ),
  );
  // In step, no source would ever be a whole renewal ahead of another, but for the one that is under way.
  const isApart = () => Math.max(...writes.values()) - Math.min(...writes.values()) >= 3;
  await until(() => writes.size === developers.length && isApart(), { message: "one to be ahead of another" });
});

it("a source is free when it was found so twice in a row", async () => {
  await using nats = await startTestNats();
  await using nc = disposable(await client(nats.port));
  await using leases = await openLeases(nc.nc, "I1", { ...calm, pollMs: 1 });
  const owners = [undefined, { ingest: "I2", tap: "T2", lease: "L2" }, undefined, undefined];
  const ownerOf = vi.spyOn(LeaseBucket.prototype, "ownerOf");
  onTestFinished(() => ownerOf.mockRestore());
  for (const owner of owners) ownerOf.mockResolvedValueOnce({ owner, revision: 1 });
  await leases.freed(source, never);
  expect(ownerOf).toHaveBeenCalledTimes(owners.length);
});

const disposable = (nc: Awaited<ReturnType<typeof client>>) => ({ nc, [Symbol.asyncDispose]: () => nc.close() });
