import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestNats } from "../testing/nats.ts";
import { type AuditEntry, auditEntryOf } from "./entry.ts";
import { type AuditPeriod, type AuditStore, auditStream, openAuditStore } from "./store.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let nc: Awaited<ReturnType<typeof connect>>;
beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  nc = stack.adopt(await connect({ servers: nats.url }), (one) => one.close());
});

const made = (workspace: string, id: string) =>
  auditEntryOf({
    action: "token.created",
    kind: "token",
    who: "ops",
    workspace,
    by: "0a",
    about: { id, roles: ["viewer"] },
  });

async function read(store: AuditStore, period: AuditPeriod = {}): Promise<AuditEntry[]> {
  return Array.fromAsync(store.read(period));
}

it("gives what was appended, in its order, of a workspace or of all, from a time on", async () => {
  const store = await openAuditStore(nc);
  expect(await read(store)).toEqual([]);
  const entries = [made("acme", "1"), made("globex", "2"), made("-", "3"), made("acme", "4")];
  for (const entry of entries) await store.append(entry);
  expect(await read(store)).toEqual(entries);
  expect(await read(store, { workspace: "acme" })).toEqual([entries[0], entries[3]]);
  expect(await read(store, { workspace: "nobody" })).toEqual([]);
  const later = new Date(Date.now() + 60_000);
  expect(await read(store, { since: later })).toEqual([]);
  expect(await read(store, { until: later })).toHaveLength(4);
  expect(await read(store, { until: new Date(0) })).toEqual([]);
});

it("keeps its bounds where none are given, and takes others", async () => {
  const bounds = { maxAgeMs: 3_600_000, maxBytes: 1024 * 1024 };
  const infos = (await jetstreamManager(nc)).streams;
  await openAuditStore(nc, bounds);
  await openAuditStore(nc);
  const { config } = await infos.info(auditStream);
  expect([config.max_age, config.max_bytes]).toEqual([3_600_000_000_000, 1024 * 1024]);
  expect([config.deny_delete, config.deny_purge, config.discard]).toEqual([false, true, "old"]);
});

it("gives thousands of entries, each once, and drops the oldest where it has no more room", async () => {
  const store = await openAuditStore(nc, { maxAgeMs: 3_600_000, maxBytes: 1024 * 1024 });
  const count = 1_300;
  await Promise.all(Array.from({ length: count }, (_, index) => store.append(made("many", `${index}`))));
  const ids = (await read(store, { workspace: "many" })).map(({ about }) => Number(about.id));
  expect(new Set(ids).size).toBe(count);
  await openAuditStore(nc, { maxAgeMs: 3_600_000, maxBytes: 20_000 });
  const left = (await read(store, { workspace: "many" })).length;
  expect(left).toBeGreaterThan(10);
  expect(left).toBeLessThan(200);
});

it("texts are bounded, not cut through a character", () => {
  const long = "\u{1F600}".repeat(1_000);
  const { who, about } = auditEntryOf({
    action: "control.refused",
    kind: "token",
    who: `x${long}`,
    workspace: "-",
    about: { source: long },
  });
  for (const text of [who, String(about.source)]) {
    expect(text.length).toBeLessThanOrEqual(301);
    expect(text.isWellFormed()).toBe(true);
  }
});
