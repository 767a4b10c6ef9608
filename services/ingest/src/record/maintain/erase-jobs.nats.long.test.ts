import { ownChannel } from "@tapedeck/shared/events/kinds";
import { DeveloperErasureStore, developerKey } from "@tapedeck/shared/log/erasures/developer-erasures";
import { type Erasure, ErasureStore } from "@tapedeck/shared/log/erasures/erasure-store";
import { answerTablesPassed } from "@tapedeck/shared/log/erasures/tables-passed";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { defaultQuery } from "@tapedeck/shared/log/queries/query-map";
import { channelFilter } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceName, sourceParts } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { until } from "@tapedeck/shared/testing/until";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import type { OpenStore } from "../../store.ts";
import { onlyStore, openedStore } from "../../testing/opened-store.ts";
import { appendFact } from "../journal/append-fact.ts";
import { notReady } from "../push-errors.ts";
import type { Store } from "../recorder-options.ts";
import { sourcesOfDeveloper } from "./developer-sources.ts";
import { eraseCall } from "./erase-call.ts";
import { beginDeveloperErasure } from "./erase-developer.ts";
import { EraseJobs, type EraseJobsOptions } from "./erase-jobs.ts";
import { beginErasure, followErasure } from "./erasures.ts";

const { signal } = new AbortController();
const session = "01KE3M9Z6Q4W8T2V5X7Y9A1B30";
const other = "01KE3M9Z6Q4W8T2V5X7Y9A1B31";
const sourceIn = (workspace: string) =>
  sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });

let store: OpenStore;
let erasures: ErasureStore;
beforeEach(async () => {
  store = await openedStore();
  erasures = new ErasureStore(store.nats);
});

/** A session that has ended: three events on Tapedeck's own channel, and one of the upstream's. */
async function record(source: SourceName, id: string, writer = testWriter(store.log.writer, source)): Promise<void> {
  await writer.append(2, { session: id, channel: "tapedeck", kind: "session.labelled" });
  await writer.append(1, { session: id, channel: "tapedeck", kind: "session.ended" });
  await writer.append(1, { session: id });
}

async function begin(id: string, source?: SourceName): Promise<Erasure> {
  const request = { session: id, source, who: "alice", kind: "local" } as const;
  return await beginErasure(request, { ...store, signal });
}

type Jobs = { readonly stop: () => Promise<void>; readonly audited: readonly string[] };

/** Jobs on the real log, as ingest has them. */
function start({
  store: used = store,
  ...more
}: Partial<Pick<EraseJobsOptions, "recordFact">> & { readonly store?: Store } = {}): Jobs {
  const stopping = new AbortController();
  const audited: string[] = [];
  const jobs = new EraseJobs({
    stores: onlyStore(used),
    ingest: "test",
    recordFact: (source, id, fact) => appendFact({ log: store.log, source, session: id, fact, signal }),
    audit: async (action, erasure) => void audited.push(`${action} ${erasure.session}`),
    auditDeveloper: async (action) => void audited.push(action),
    logger: silentLogger,
    signal: stopping.signal,
    ...more,
  });
  const stop = async () => {
    stopping.abort();
    await jobs[Symbol.asyncDispose]();
  };
  onTestFinished(stop);
  return { stop, audited };
}

/** The store, whose reader pauses behind the first event of a source until `goOn` resolves or the reader is stopped. */
function pausing(source: SourceName, goOn: (reading: AbortSignal) => Promise<unknown>): OpenStore {
  const { reader } = store.log;
  const history: typeof reader.history = async function* (from, untilOffset, reading) {
    const isPausing = from.subjects.includes(channelFilter(source, ownChannel));
    for await (const recorded of reader.history(from, untilOffset, reading)) {
      yield recorded;
      if (isPausing) await goOn(reading);
      if (reading.aborted) return;
    }
  };
  return { ...store, log: { ...store.log, reader: Object.assign(Object.create(reader), { history }) } };
}

/** Every event of the log. */
async function allEvents(): Promise<readonly RecordedEvent[]> {
  const { lastOffset } = await store.log.reader.bounds();
  return Array.fromAsync(store.log.reader.history({ afterOffset: logStart, subjects: [] }, lastOffset, signal));
}

async function kindsOf(id: string): Promise<readonly string[]> {
  const { lastOffset } = await store.log.reader.bounds();
  const kinds: string[] = [];
  for await (const { event } of store.log.reader.history({ afterOffset: logStart, subjects: [] }, lastOffset, signal)) {
    if (event.session === id || event.subject === id) kinds.push(event.kind);
  }
  return kinds;
}

/** The ordinals that the session's marks say were erased. */
async function markedOf(id: string): Promise<readonly string[]> {
  const { lastOffset } = await store.log.reader.bounds();
  const found: string[] = [];
  for await (const { event } of store.log.reader.history({ afterOffset: logStart, subjects: [] }, lastOffset, signal)) {
    if (event.subject !== id || event.detail?.$case !== "session_detail") continue;
    const { erased } = event.detail.value;
    for (const { first, last } of erased?.ordinals ?? []) found.push(`${first}-${last}`);
  }
  return found;
}

const isDone = (id: string) =>
  until(async () => (await erasures.of(id))?.state === "done", { message: "the erasure to end" });

it("an erasure that fails holds up no other, and is audited once until it succeeds", async () => {
  const [imported, free] = [elsewhere, sourceIn("acme")];
  await record(imported, session);
  await record(free, other);
  await begin(session);
  await begin(other);
  let isImporting = true;
  let failures = 0;
  let aborted = 0;
  const paused = pausing(free, async (reading) => {
    await until(() => failures >= 2 || reading.aborted, { message: "the other erasure to fail twice" });
    if (reading.aborted) aborted++;
  });
  const jobs = start({
    store: paused,
    async recordFact(source, id, fact) {
      // The recorder refuses it with the same error.
      if (id === session && isImporting) {
        failures++;
        throw notReady(`${source} is being imported`);
      }
      await appendFact({ log: store.log, source, session: id, fact, signal });
    },
  });
  await isDone(other);
  expect(aborted).toBe(0);
  expect(await markedOf(other)).toEqual(["1-3"]);
  expect(await kindsOf(other)).toEqual(["session.erased"]);
  expect(await erasures.of(session)).toMatchObject({ state: "removing" });
  isImporting = false;
  await isDone(session);
  expect(await kindsOf(session)).toEqual(["session.erased"]);
  expect(jobs.audited.filter((entry) => entry.endsWith(session))).toEqual([
    `session.erasure-begun ${session}`,
    `session.erased ${session}`,
  ]);
});

it("an erasure that is broken off while its session is read writes no mark of a part", async () => {
  const source = sourceIn("acme");
  await record(source, session);
  await begin(session);
  const reading = Promise.withResolvers<void>();
  const first = start({
    store: pausing(source, async (stopped) => {
      reading.resolve();
      await until(() => stopped.aborted, { message: "the jobs to be stopped" });
    }),
  });
  await reading.promise;
  await first.stop();
  expect(await markedOf(session)).toEqual([]);
  const second = start();
  await isDone(session);
  expect(await markedOf(session)).toEqual(["1-3"]);
  expect([...first.audited, ...second.audited]).toEqual([
    `session.erasure-begun ${session}`,
    `session.erased ${session}`,
  ]);
});

it("the erasure of a developer that is broken off is continued, and leaves nothing of any source", async () => {
  const [one, two] = [sourceIn("acme"), sourceIn("acme").replace("shop", "web") as SourceName];
  await record(one, session);
  await record(two, other);
  const developer = { workspace: "acme", developer: "alice" };
  const request = { ...developer, tokens: [], who: "ops", kind: "local", by: undefined } as const;
  await beginDeveloperErasure(request, { ...store, signal });
  const reading = Promise.withResolvers<void>();
  const first = start({
    store: pausing(two, async (stopped) => {
      reading.resolve();
      await until(() => stopped.aborted, { message: "the jobs to be stopped" });
    }),
  });
  await reading.promise;
  await first.stop();
  const developers = new DeveloperErasureStore(store.nats);
  const key = developerKey(developer);
  expect(await developers.of(key)).toMatchObject({ state: "removing", developer: "alice" });
  const second = start();
  const waits = async () => (await developers.of(key))?.waitsFor?.startsWith("query");
  await until(waits, { message: "the job to wait for the tables" });
  expect((await sourcesOfDeveloper(developer, { ...store, signal })).sources.size).toBe(2);
  // What the log has at each request for tables. The first one with the same is refused.
  const left: string[] = [];
  const onlyMark = Promise.withResolvers<void>();
  using _tables = answerTablesPassed(store.nats, defaultQuery, async (workspace, { epoch, seq }) => {
    const events = await allEvents();
    const marks = events.flatMap(({ event, offset }) => (event.kind === "source.erased" ? [sequenceOf(offset)] : []));
    expect([workspace, epoch, marks]).toEqual(["acme", store.log.epoch, expect.arrayContaining([seq])]);
    const now = events
      .map(({ event }) => `${sourceParts(event.source as SourceName).project} ${event.kind}`)
      .join(", ");
    const isKnown = left.includes(now);
    if (!isKnown) left.push(now);
    if (left.length === 2) onlyMark.resolve();
    return isKnown;
  });
  await onlyMark.promise;
  await second.stop();
  const third = start();
  await until(async () => (await developers.of(key))?.state === "done", { message: "the erasure to end" });
  // All tables are past a source's mark before anything of the source goes, and again before the mark itself goes.
  expect(left).toEqual([
    "shop session.erased, web session.erased, shop source.erased",
    "web session.erased, shop source.erased",
    // Broken off here: in the log the other source is first now.
    "web session.erased, shop source.erased, web source.erased",
    "shop source.erased, web source.erased",
    "shop source.erased",
  ]);
  expect((await sourcesOfDeveloper(developer, { ...store, signal })).sources.size).toBe(0);
  expect((await store.log.reader.bounds()).messages).toBe(0);
  expect(await store.log.ends.all()).toEqual(new Map());
  expect(await developers.of(key)).not.toHaveProperty("developer");
  const ofDeveloper = [...first.audited, ...second.audited, ...third.audited].filter((entry) =>
    entry.startsWith("developer."),
  );
  expect(ofDeveloper).toEqual(["developer.erasure-begun", "developer.erased"]);
});

it("an erasure that is asked for while NATS is away is not ready, and may be asked for again", async () => {
  await record(sourceIn("acme"), session);
  await store.nats.close();
  const request = { source: "", workspace: "acme", session, after_sequence: 0n, who: "alice", kind: "local", by: "" };
  await expect(eraseCall(request, onlyStore(store), signal).next()).rejects.toMatchObject({ code: "not_ready" });
});

it("an erasure that a restored log overtakes removes what that log has of the session", async () => {
  await record(sourceIn("acme"), session);
  const begun = await begin(session);
  const { lastOffset } = await store.log.reader.bounds();
  const end = sequenceOf(lastOffset);
  await erasures.advance({
    ...begun,
    epoch: "former",
    audited: true,
    markedSeq: end,
    removedSeq: end,
    events: 4,
    removed: 4,
  });
  start();
  await isDone(session);
  expect(await kindsOf(session)).toEqual(["session.erased"]);
  expect(await erasures.of(session)).toMatchObject({ events: 4, removed: 4, epoch: store.log.epoch });
});

it("the progress of an erasure does not make its own process list all of them", async () => {
  const source = sourceIn("acme");
  await record(source, session);
  const begun = await begin(session);
  let looks = 0;
  const requests = store.nats.subscribe("$JS.API.STREAM.MSG.GET.KV_TAPEDECK_ERASURES", {
    callback: (_, message) => {
      if (message.string().includes("next_by_subj")) looks++;
    },
  });
  const reading = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  start({
    store: pausing(source, async () => {
      reading.resolve();
      await goOn.promise;
    }),
  });
  await reading.promise;
  const before = looks;
  const rounds = 30;
  for (let round = 0; round < rounds; round++) {
    await erasures.advance({ ...begun, audited: true });
    // A listing that this caused is asked for before this answer.
    await erasures.of(session);
  }
  const during = looks - before;
  goOn.resolve();
  await isDone(session);
  requests.unsubscribe();
  expect(before).toBeGreaterThan(0);
  expect(during).toBeLessThan(rounds / 2);
  // Another one is begun at once all the same.
  await record(elsewhere, other);
  await begin(other);
  await isDone(other);
});

/** The store, whose messages are read when `goOn` resolves; with the last sequences up to which they were. */
function readingLate(goOn: Promise<void>): { readonly late: OpenStore; readonly lasts: readonly number[] } {
  const lasts: number[] = [];
  const stored: typeof store.log.stored = async function* (range, reading) {
    lasts.push(range.last);
    await goOn;
    yield* store.log.stored(range, reading);
  };
  return { late: { ...store, log: { ...store.log, stored } }, lasts };
}

it("a caller hears of an erasure before its events are counted", async () => {
  await record(sourceIn("acme"), session);
  const erasure = await begin(session);
  const goOn = Promise.withResolvers<void>();
  start({ store: readingLate(goOn.promise).late });
  const following = followErasure(erasure, { ...store, signal });
  const { value: first } = await following.next();
  expect(first).toMatchObject({ state: "removing", removed: 0 });
  expect(first).not.toHaveProperty("events");
  expect(await markedOf(session)).toEqual(["1-3"]);
  goOn.resolve();
  const [last] = (await Array.fromAsync(following)).slice(-1);
  expect(last).toMatchObject({ state: "done", events: 4, removed: 4 });
});

const elsewhere = sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" });

it.each([
  ["the source where it was", sourceIn("acme")],
  ["no source", undefined],
])(
  "an erased session that was imported into another source is erased there by a caller that names %s",
  async (_, source) => {
    start();
    await record(sourceIn("acme"), session);
    await begin(session, source);
    await isDone(session);
    expect(await begin(session, source)).toMatchObject({ state: "done", source: sourceIn("acme") });
    await record(elsewhere, session);
    expect(await begin(session, source)).toMatchObject({ state: "removing", source: elsewhere });
    await until(async () => (await kindsOf(session)).every((kind) => kind === "session.erased"), {
      message: "the second erasure to end",
    });
    expect(await markedOf(session)).toEqual(["1-3", "1-3"]);
  },
);

it("an erasure under way is no erasure of what is imported behind its mark", async () => {
  await record(sourceIn("acme"), session);
  const erasure = await begin(session);
  const goOn = Promise.withResolvers<void>();
  start({ store: readingLate(goOn.promise).late });
  await followErasure(erasure, { ...store, signal }).next();
  expect(await begin(session)).toMatchObject({ state: "removing" });
  await record(elsewhere, session);
  await expect(begin(session)).rejects.toMatchObject({
    code: "not_ready",
    message: expect.stringContaining("was imported again meanwhile"),
  });
  goOn.resolve();
  await isDone(session);
  expect(await begin(session)).toMatchObject({ state: "removing", source: elsewhere });
  await isDone(session);
  expect(new Set(await kindsOf(session))).toEqual(new Set(["session.erased"]));
});

it("the log behind a session is read once to erase it", async () => {
  const source = sourceIn("acme");
  const writer = testWriter(store.log.writer, source);
  await record(source, session, writer);
  const { lastOffset } = await store.log.reader.bounds();
  await record(source, other, writer);
  await begin(session);
  const { late, lasts } = readingLate(Promise.resolve());
  start({ store: late });
  await isDone(session);
  expect(lasts.filter((last) => last > sequenceOf(lastOffset))).toHaveLength(1);
  expect(await kindsOf(other)).not.toEqual([]);
});

it("a caller whose erasure can't be marked yet hears that it goes on by itself", async () => {
  await record(sourceIn("acme"), session);
  const erasure = await begin(session);
  let isImporting = true;
  start({
    async recordFact(source, id, fact) {
      if (isImporting) throw notReady(`${source} is being imported`);
      await appendFact({ log: store.log, source, session: id, fact, signal });
    },
  });
  await expect(followErasure(erasure, { ...store, signal }, 100).next()).rejects.toMatchObject({
    code: "not_ready",
    message: expect.stringContaining("the server continues by itself"),
  });
  isImporting = false;
  await isDone(session);
});
