import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Item, PushRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { compareTimestamps, timestampNow, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { Mailbox } from "@tapedeck/tap/push/mailbox";
import { ulid } from "ulid";
import { afterAll, beforeAll, expect, it } from "vitest";
import { normalizers } from "../../normalize/normalizers.ts";
import type { OpenStore, OpenStores } from "../../store.ts";
import { framesOf, holes, kindsOf, openLogReader, skaffoldSource, testLogger } from "../../testing/ingest-harness.ts";
import { onlyStore, storesOn } from "../../testing/opened-store.ts";
import { eraseCall } from "../maintain/erase-call.ts";
import { sessionErased } from "../own-facts/session-facts.ts";
import { Recorder } from "../recorder.ts";
import type { Store } from "../recorder-options.ts";

let nats: TestNats;
let logReader: Awaited<ReturnType<typeof openLogReader>>;
let stores: OpenStores;
let store: OpenStore;

beforeAll(async () => {
  nats = await startTestNats();
  logReader = await openLogReader(nats.url);
  stores = await storesOn(nats.url, ulid(), testLogger);
  store = await stores.of("default");
});

afterAll(async () => {
  await stores[Symbol.asyncDispose]();
  await logReader[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

const never = 3_600_000;
/**
 * The time of what taps push: the same when it is pushed again, and recent enough that the taps do not seem to be
 * behind.
 */
const began = Date.now() + 60_000;

/** Something of v1 at a time of its own. */
function message(entry: string): Buffer {
  const timestamp = timestampOfMs(began + entry.length);
  return Buffer.from(LogEntry.encode(LogEntry.fromPartial({ timestamp, entry })).finish());
}

/** A recorder that says at once that a source is lost, and ends its session after so long. */
function recorder(lostAfterMs: number, noticeMs = 10): Recorder {
  return new Recorder({ stores: () => stores, normalizers, logger: testLogger, lostAfterMs, noticeMs });
}

/** A tap that pushes what it has made since `first`; leaving it without a word is what a kill is. */
function tapped(on: Recorder, developer: string, { tap = "T", first = 1n } = {}) {
  const requests = new Mailbox<PushRequest>();
  const closed = new AbortController();
  const responses: NonNullable<PushResponse["body"]>[] = [];
  let failure: unknown;
  const hello = { developer, project: "shop", upstream: "skaffold", tap, labels: {}, redact: "off", settings: {} };
  void requests.put({ body: { $case: "hello", value: { ...hello, first_index: first } } });
  const pushing = (async () => {
    const pushed = on.push(requests, { workspace: "default", signal: closed.signal });
    for await (const { body } of pushed) if (body !== undefined) responses.push(body);
  })().catch((error: unknown) => {
    failure = error;
  });
  let index = first;
  const push = (what: Item["what"], connection = "C1") => {
    const at = timestampOfMs(began + Number(index) * 1_000);
    void requests.put({ body: { $case: "item", value: { index, connection, at, what } } });
    index += 1n;
  };
  return {
    push,
    dial: (connection = "C1") =>
      push({ $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["v1"] } }, connection),
    frame: (text: string, connection = "C1") =>
      push({ $case: "frame", value: { channel: "v1", bytes: message(text), more: false } }, connection),
    close: (process_ended: boolean) => push({ $case: "closed", value: { reason: "cut", process_ended } }),
    async committed() {
      const done = () => responses.some((body) => body.$case === "committed" && body.value.index === index - 1n);
      await until(done, { message: `item ${index - 1n} of ${developer} to be committed` });
    },
    async welcomed() {
      await until(() => responses.some(({ $case }) => $case === "welcome") || failure, { message: "the welcome" });
    },
    failure: () => failure,
    next: () => index,
    async kill() {
      closed.abort();
      requests.close();
      await pushing;
    },
  };
}

/** One that has recorded a session, and is killed. */
async function killed(on: Recorder, developer: string) {
  const tap = tapped(on, developer);
  tap.dial();
  tap.frame("one");
  await tap.committed();
  await tap.kill();
  return tap;
}

const recorded = (developer: string) => logReader.events(skaffoldSource(developer));
const has = async (developer: string, kind: Event["kind"]) =>
  until(async () => kindsOf(await recorded(developer)).includes(kind), { message: `${kind} of ${developer}` });
const detailOf = (events: readonly Event[], kind: string) => events.find((event) => event.kind === kind)?.detail?.value;

it("a tap that is gone without a word is said to be lost, and its session goes on", async () => {
  await using on = recorder(never);
  await killed(on, "alice");
  await has("alice", "upstream.lost");
  const events = await recorded("alice");
  expect(kindsOf(events)).toEqual([
    ...["source.added", "upstream.connected", "session.started", "session.identified", "upstream.lost"],
  ]);
  expect(detailOf(events, "upstream.lost")).toMatchObject({ connection: "C1", unheard: true });
  const lost = events.at(-1);
  expect(lost).toMatchObject({ inferred: true, not_before: { seconds: expect.any(BigInt) } });
  await until(() => on.lost.has(skaffoldSource("alice")), { message: "it to be listed" });
  expect(on.lost.get(skaffoldSource("alice"))).toMatchObject({ seconds: lost?.not_before?.seconds });
});

it("its session is lost after a time, without an end that anybody saw", async () => {
  await using on = recorder(50);
  await killed(on, "bob");
  await has("bob", "session.lost");
  const events = await recorded("bob");
  expect(kindsOf(events).slice(-3)).toEqual(["upstream.lost", "session.gap", "session.lost"]);
  const [received, , end] = events.slice(-3);
  expect(end).toMatchObject({ not_before: received?.not_before, inferred: true });
  expect(detailOf(events, "session.gap")).toMatchObject({ channel: "", open: true });
  await until(() => on.lost.size === 0, { message: "nobody to be waited for" });
});

it("a tap that is back goes on with its connection, and nothing is there twice", async () => {
  await using on = recorder(never);
  const before = await killed(on, "carol");
  await has("carol", "upstream.lost");
  const tap = tapped(on, "carol", { first: before.next() });
  await has("carol", "upstream.restored");
  expect(on.lost.size).toBe(0);
  tap.frame("one more");
  await tap.committed();
  await tap.kill();
  const events = await recorded("carol");
  expect(framesOf(events, "v1")).toEqual([message("one"), message("one more")]);
  expect(kindsOf(events).slice(2)).toEqual([
    ...["session.started", "session.identified", "upstream.lost", "upstream.restored"],
  ]);
  expect(holes(events)).toEqual([]);
});

it("a tap that is back when its session was given up goes on with that, and the gap is filled", async () => {
  await using on = recorder(30);
  await killed(on, "dave");
  await has("dave", "session.lost");
  // What it did not know to be recorded it pushes again.
  const tap = tapped(on, "dave");
  tap.dial();
  tap.frame("one");
  tap.frame("one more");
  await tap.committed();
  tap.close(true);
  await tap.committed();
  const events = await recorded("dave");
  expect(framesOf(events, "v1")).toEqual([message("one"), message("one more")]);
  expect(kindsOf(events).slice(-7)).toEqual([
    ...["upstream.lost", "session.gap", "session.lost", "upstream.restored", "session.gap_filled"],
    ...["upstream.lost", "session.ended"],
  ]);
  expect(new Set(events.flatMap(({ session }) => (session === "" ? [] : [session]))).size).toBe(1);
  expect(holes(events)).toEqual([]);
  await tap.kill();
});

/** Asks for it as an admin does. */
async function erase(developer: string, session: string): Promise<void> {
  const source = skaffoldSource(developer);
  const [workspace = ""] = source.split("/");
  const request = { source, session, after_sequence: 0n, workspace, who: "op", by: "", kind: "token" };
  for await (const _ of eraseCall(request, stores, AbortSignal.timeout(60_000)));
}

const sessionsOf = (events: readonly Event[]) => [...new Set(events.flatMap(({ session }) => session || []))];

it("a session whose tap is waited for can't be erased: it goes on", async () => {
  await using on = recorder(never);
  const before = await killed(on, "kim");
  await has("kim", "upstream.lost");
  const [session = ""] = sessionsOf(await recorded("kim"));
  await expect(erase("kim", session)).rejects.toThrow(/is still running: end it first/);
  const tap = tapped(on, "kim", { first: before.next() });
  tap.frame("one more");
  await tap.committed();
  await tap.kill();
  expect(framesOf(await recorded("kim"), "v1")).toEqual([message("one"), message("one more")]);
});

it("a tap that is back while its session is being erased begins another one", async () => {
  await using on = recorder(30);
  const before = await killed(on, "leo");
  await has("leo", "session.lost");
  const [erased = ""] = sessionsOf(await recorded("leo"));
  // What is to be erased stands behind its mark as long as that takes.
  await on.recordFact(skaffoldSource("leo"), erased, sessionErased(erased, []));
  const end = (await recorded("leo")).length;
  const tap = tapped(on, "leo", { first: before.next() });
  tap.frame("one more");
  tap.close(true);
  await tap.committed();
  await tap.kill();
  const events = (await recorded("leo")).slice(end);
  expect(sessionsOf(events)).not.toContain(erased);
  expect(framesOf(events, "v1")).toEqual([message("one more")]);
  expect(kindsOf(events)).toEqual([
    ...["upstream.restored", "session.started", "session.identified", "upstream.lost", "session.ended"],
  ]);
});

it("another tap's next session ends the one before with a gap, and no end that nobody saw", async () => {
  await using on = recorder(never);
  await killed(on, "erin");
  const next = tapped(on, "erin", { tap: "T2" });
  next.dial("C2");
  next.frame("another process", "C2");
  await next.committed();
  await next.kill();
  const events = await recorded("erin");
  const [first, second] = [...new Set(events.flatMap(({ session }) => (session === "" ? [] : [session])))];
  const of = (session: string | undefined) => kindsOf(events.filter((event) => event.session === session));
  expect(of(first).slice(-2)).toEqual(["session.gap", "session.lost"]);
  expect(of(first)).not.toContain("session.ended");
  expect(of(second)).toContain("session.started");
});

it("a recorder that is started again says it from the log alone", async () => {
  {
    await using on = recorder(never, never);
    for (const name of ["frank", "grace"]) await killed(on, name);
    const left = tapped(on, "heidi");
    left.dial();
    left.frame("one");
    left.close(false);
    await left.committed();
    await left.kill();
    const ended = tapped(on, "ivan");
    ended.dial();
    ended.frame("one");
    ended.close(true);
    await ended.committed();
    await ended.kill();
  }
  {
    await using on = recorder(never);
    await on.surveyLostSources(store);
    await has("frank", "upstream.lost");
    await has("grace", "upstream.lost");
    expect(kindsOf(await recorded("frank"))).not.toContain("session.lost");
  }
  const before = await recorded("ivan");
  await using on = recorder(20);
  // One of them comes back before it is examined again.
  const back = tapped(on, "grace", { first: 3n });
  await back.welcomed();
  await on.surveyLostSources(store);
  for (const name of ["frank", "heidi"]) await has(name, "session.lost");
  const frank = kindsOf(await recorded("frank"));
  expect(frank.filter((kind) => kind === "upstream.lost" || kind === "session.lost")).toEqual([
    "upstream.lost",
    "session.lost",
  ]);
  expect(kindsOf(await recorded("grace"))).not.toContain("session.lost");
  expect(await recorded("ivan")).toEqual(before);
  await back.kill();
});

it("a source that another ingest records is lost when that one's tap is gone, and not when it was turned away here", async () => {
  await using there = recorder(never, never);
  const elsewhere = await storesOn(nats.url, ulid(), testLogger);
  await using stack = new AsyncDisposableStack();
  stack.use(elsewhere);
  const observations: ("held" | "free")[] = [];
  const { leases } = elsewhere;
  const take: typeof leases.take = async (...expected) => {
    const lease = await leases.take(...expected);
    observations.push(lease === undefined ? "held" : "free");
    return lease;
  };
  const freed: typeof leases.freed = (...expected) => leases.freed(...expected);
  const here: Store = {
    ...(await elsewhere.of("default")),
    leases: {
      take,
      freed,
      ownedIn: (workspace) => leases.ownedIn(workspace),
      [Symbol.asyncDispose]: () => leases[Symbol.asyncDispose](),
    },
  };
  const on = stack.use(
    new Recorder({ stores: () => onlyStore(here), normalizers, logger: testLogger, lostAfterMs: never, noticeMs: 10 }),
  );
  const oneMoreObservation = async () => {
    const { length } = observations;
    await until(() => observations.length > length + 1, { message: "the source to be looked at again" });
  };

  const tap = tapped(there, "mia");
  tap.dial();
  tap.frame("one");
  await tap.committed();
  const other = tapped(on, "mia", { tap: "T2" });
  await other.kill();
  expect(other.failure()).toMatchObject({ code: "source_taken" });
  await oneMoreObservation();
  const received = timestampNow();
  await oneMoreObservation();
  expect(kindsOf(await recorded("mia"))).not.toContain("upstream.lost");
  await tap.kill();
  await has("mia", "upstream.lost");
  const since = (await recorded("mia")).at(-1)?.not_before;
  expect(compareTimestamps(since ?? timestampOfMs(0), received)).toBeGreaterThanOrEqual(0);
  // Its tap has the time to come back that any other has.
  expect(observations.filter((observation) => observation === "free").length).toBeGreaterThan(1);
});

it("a tap that comes while its source is examined is not turned away", async () => {
  let met = Promise.withResolvers<void>();
  let meetsAt: "asking" | "having" = "asking";
  const meet = (at: typeof meetsAt) => {
    if (at === meetsAt) met.resolve();
  };
  // The process that examines it takes the lease first.
  const take: typeof store.leases.take = async (...expected) => {
    meet("asking");
    const lease = await store.leases.take(...expected);
    meet("having");
    return lease;
  };
  const watched: Store = { ...store, leases: { ...store.leases, take } };
  const options = { normalizers, logger: testLogger, lostAfterMs: never, noticeMs: 0 };
  await using on = new Recorder({ stores: () => onlyStore(watched), ...options });
  for (let round = 0; round < 16; round++) {
    const tap = tapped(on, "judy", { tap: `T${round}` });
    await tap.welcomed();
    expect(tap.failure()).toBeUndefined();
    tap.dial(`C${round}`);
    await tap.committed();
    met = Promise.withResolvers<void>();
    meetsAt = round % 2 === 0 ? "asking" : "having";
    await tap.kill();
    await met.promise;
  }
  expect(holes(await recorded("judy"))).toEqual([]);
});
