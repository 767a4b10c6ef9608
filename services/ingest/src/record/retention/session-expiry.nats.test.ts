import { isDeepStrictEqual } from "node:util";
import { ErasureStore } from "@tapedeck/shared/log/erasures/erasure-store";
import { logStart } from "@tapedeck/shared/log/offset";
import { WorkspaceStore } from "@tapedeck/shared/log/workspaces/workspace-store";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { headers } from "nats";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import type { OpenStores } from "../../store.ts";
import { storesOn } from "../../testing/opened-store.ts";
import { appendFact } from "../journal/append-fact.ts";
import { EraseJobs } from "../maintain/erase-jobs.ts";
import { Retentions } from "./retentions.ts";
import { SessionExpiry } from "./session-expiry.ts";

let stores: OpenStores;
beforeEach(async () => {
  const server = await startTestNats();
  onTestFinished(() => server[Symbol.asyncDispose]());
  stores = await storesOn(server.url);
  onTestFinished(() => stores[Symbol.asyncDispose]());
});

const sourceOf = (workspace: string, developer = "alice"): SourceName =>
  sourceName({ workspace, developer, project: "shop", upstream: "skaffold" });
const own = { channel: "tapedeck" };
const [one, two, on, bobs, theirs, kept] = ["0", "1", "2", "3", "4", "5"].map(
  (end) => `01KE3M9Z6Q4W8T2V5X7Y9A1B3${end}`,
) as [string, string, string, string, string, string];

async function recorded(source: SourceName, sessions: readonly string[], { last = "ended" } = {}) {
  const { log } = await stores.of(source.split("/")[0] ?? "");
  const writer = testWriter(log.writer, source);
  for (const session of sessions) {
    await writer.append(1, { ...own, session, kind: "session.started" });
    await writer.append(5, { session });
    if (last === "ended" || session !== sessions.at(-1))
      await writer.append(1, { ...own, session, kind: "session.ended" });
  }
}

/** How many events the log has of each session, and which of them have a mark that they expired. */
async function held(workspace: string) {
  const { log } = await stores.of(workspace);
  const { lastOffset } = await log.reader.bounds();
  const events: Record<string, number> = {};
  const expired: string[] = [];
  const { signal } = new AbortController();
  for await (const { event } of log.reader.history({ afterOffset: logStart, subjects: [] }, lastOffset, signal)) {
    const detail = event.detail?.$case === "session_detail" ? event.detail.value : undefined;
    if (detail?.erased?.expired) expired.push(event.session);
    else events[event.session] = (events[event.session] ?? 0) + 1;
  }
  return { events, expired: expired.toSorted() };
}

/** Retentions that nobody changes. */
function fixed(facts: Readonly<Record<string, number>>): Pick<Retentions, "of" | "stored"> {
  const of = (workspace: string) => ({ facts: facts[workspace], text: undefined });
  return { of, stored: async (workspace) => of(workspace) };
}

/** Retentions as ingest has them; by default everything is kept. */
function real(): Retentions {
  const defaults = { facts: undefined, text: undefined };
  return new Retentions({ defaults, stores: () => stores, audit: async () => {} });
}

function startExpiry(retentions: Pick<Retentions, "of" | "stored">) {
  const stop = new AbortController();
  const { signal } = stop;
  const expiry = new SessionExpiry({ stores, retentions, ingest: "test", everyMs: 50, logger: silentLogger, signal });
  onTestFinished(async () => {
    stop.abort();
    await expiry[Symbol.asyncDispose]();
  });
}

function startJobs() {
  const stop = new AbortController();
  const { signal } = stop;
  const audited: string[] = [];
  const jobs = new EraseJobs({
    stores,
    ingest: "test",
    recordFact: async (source, session, fact) => {
      const { log } = await stores.of(source.split("/")[0] ?? "");
      await appendFact({ log, source, session, fact, signal });
    },
    audit: async (action) => void audited.push(action),
    auditDeveloper: async (action) => void audited.push(action),
    logger: silentLogger,
    signal,
  });
  onTestFinished(async () => {
    stop.abort();
    await jobs[Symbol.asyncDispose]();
  });
  return audited;
}

it("sessions that ended longer ago than their workspace keeps them go, one that goes on stays until it has ended", async () => {
  await recorded(sourceOf("acme"), [one, two, on], { last: "open" });
  await recorded(sourceOf("acme", "bob"), [bobs]);
  await recorded(sourceOf("acme-2"), [theirs]);
  await recorded(sourceOf("globex"), [kept]);
  const audited = startJobs();
  startExpiry(fixed({ acme: 1, "acme-2": 3_600 }));
  const areLeft = (sessions: Readonly<Record<string, number>>) =>
    until(async () => isDeepStrictEqual((await held("acme")).events, sessions), { message: "the others to expire" });
  await areLeft({ [on]: 6 });
  expect(await held("acme-2")).toEqual({ events: { [theirs]: 7 }, expired: [] });
  expect(await held("globex")).toEqual({ events: { [kept]: 7 }, expired: [] });
  const { log } = await stores.of("acme");
  const source = sourceOf("acme");
  const { signal } = new AbortController();
  await appendFact({ log, source, session: on, fact: { kind: "session.ended", summary: "" }, signal });
  await areLeft({});
  expect((await held("acme")).expired).toEqual([one, two, on, bobs]);
  // Nobody asks for these, and the audit log has what people did.
  const erasures = new ErasureStore(stores.nats);
  await until(async () => (await erasures.open()).length === 0, { message: "the erasures to end" });
  expect(await erasures.done()).toEqual([]);
  expect(audited).toEqual([]);
});

const isGone = (workspace: string, count: number) =>
  until(async () => (await held(workspace)).expired.length === count, { message: `${count} sessions to expire` });

it("no session expires by a retention that was heard and refused", async () => {
  await recorded(sourceOf("acme"), [one, two]);
  await recorded(sourceOf("globex"), [theirs]);
  const refused = headers();
  refused.set("Nats-Expected-Last-Subject-Sequence", "1000");
  stores.nats.publish("$KV.TAPEDECK_WORKSPACES.retention.acme", '{"facts":1}', { headers: refused });
  const retentions = real();
  await until(() => retentions.of("acme").facts === 1, { message: "the change to be heard" });
  await new WorkspaceStore(stores.nats).putRetention("globex", { facts: 1 });
  startJobs();
  startExpiry(retentions);
  // Workspaces have their turns by name, so that acme was looked at before.
  await isGone("globex", 1);
  expect(await held("acme")).toEqual({ events: { [one]: 7, [two]: 7 }, expired: [] });
});

it("no more sessions expire once their workspace is to keep them", async () => {
  const many = Array.from({ length: 25 }, (_, index) => `01KE3M9Z6Q4W8T2V5X7Y9A1C${String(index).padStart(2, "0")}`);
  await recorded(sourceOf("acme"), many);
  await recorded(sourceOf("globex"), [theirs]);
  const workspaces = new WorkspaceStore(stores.nats);
  await workspaces.putRetention("acme", { facts: 1 });
  const retentions = real();
  startExpiry(retentions);
  const erasures = new ErasureStore(stores.nats);
  // Others wait until these are gone.
  await until(async () => (await erasures.open()).length === 20, { message: "20 erasures" });
  await workspaces.putRetention("acme", { facts: null });
  await until(() => retentions.of("acme").facts === undefined, { message: "the change to be heard" });
  startJobs();
  // It has its turn when that of acme is over.
  await workspaces.putRetention("globex", { facts: 1 });
  await isGone("globex", 1);
  await isGone("acme", 20);
  expect(Object.keys((await held("acme")).events)).toEqual(many.slice(20));
});
