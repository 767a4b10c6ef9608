import { jetstreamManager } from "@nats-io/jetstream";
import {
  type BuildFigures,
  type CommandFigures,
  type FailureFigures,
  type FlakeFigures,
  type Gap,
  type GreenFigures,
  type LoopFigures,
  type Operation,
  type Session,
  type Source,
  type State,
  TapedeckError,
  type WebSocketClass,
} from "@tapedeck/client";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { connect as connectNats } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket as WsWebSocket } from "ws";
import { following, impatientClient } from "./following.ts";
import { type LiveHarness, startLiveHarness } from "./live-harness.ts";

const cleanup = new AsyncDisposableStack();
let harness: LiveHarness;

beforeAll(async () => {
  harness = cleanup.use(await startLiveHarness());
});
afterAll(() => cleanup.disposeAsync());

async function firstOf<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item;
  return undefined;
}

const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);

/** A WebSocket class that records the messages and counts its instances. */
function noting(Of: WebSocketClass = WebSocket as WebSocketClass) {
  const said: { type: string; id?: string }[] = [];
  const sockets: { received: number; isClosed: boolean }[] = [];
  class Noting extends Of {
    constructor(url: string, protocols: string[]) {
      super(url, protocols);
      const socket = { received: 0, isClosed: false };
      sockets.push(socket);
      this.addEventListener("message", () => {
        socket.received++;
      });
      this.addEventListener("close", () => {
        socket.isClosed = true;
      });
    }
    override send(text: string): void {
      said.push(JSON.parse(text));
      super.send(text);
    }
  }
  return { WebSocket: Noting as WebSocketClass, said, sockets };
}

describe.each([
  ["the runtime's own", undefined],
  ["that of ws", WsWebSocket as WebSocketClass],
])("with the WebSocket %s", (name, WebSocket) => {
  const developer = name.replaceAll(/\W/g, "");
  const client = () => impatientClient({ url: harness.url, ...(WebSocket && { WebSocket }) });

  it("gives history, one caught_up, then new events, each with its position", async () => {
    using tapedeck = client();
    const writer = harness.writer(developer);
    const before = await writer.builds(5);
    const reading = following(tapedeck.subscribe({ after: "start", developers: [developer], kinds: ["build.*"] }));
    await until(() => reading.got.length === 6, { message: "history" });
    const after = await writer.builds(3);
    await until(() => reading.got.length === 9, { message: "what happened since" });
    const types = reading.got.map(({ type }) => type);
    expect(types).toEqual([...Array(5).fill("event"), "caught_up", ...Array(3).fill("event")]);
    const events = reading.got.flatMap((message) => (message.type === "event" ? [message] : []));
    expect(events.map(({ position, event }) => [position, event.position, event.id])).toEqual(
      [...before, ...after].map(({ position, id }) => [position, position, id]),
    );
    expect(Object.keys(reading.got[0] ?? {}).sort()).toEqual(["event", "position", "type"]);
  });
});

it("`events` gives events, narrowed to the requested kinds", async () => {
  using tapedeck = impatientClient({ url: harness.url });
  const writer = harness.writer("eve");
  const built = await writer.builds(4, "api");
  const artifacts: (string | undefined)[] = [];
  for await (const event of tapedeck.events({ developers: ["eve"], kinds: ["build.*"], after: "start" })) {
    // Half of the test is that this compiles.
    artifacts.push(event.detail?.artifact);
    if (event.id === built.at(-1)?.id) break;
  }
  expect(artifacts).toEqual(Array(4).fill("api"));
});

it("begins now by default, and at any other requested point", async () => {
  using tapedeck = impatientClient({ url: harness.url });
  const writer = harness.writer("finn");
  const [first, second] = await writer.builds(2);
  const request = { developers: ["finn"], kinds: ["build.*"] } as const;
  const now = following(tapedeck.subscribe(request));
  const there = following(tapedeck.events({ ...request, after: first?.position ?? "" }));
  const then = following(tapedeck.events({ ...request, after: new Date(Date.now() - 60_000) }));
  await until(() => now.got.some(({ type }) => type === "caught_up"), { message: "now" });
  const [third] = await writer.builds(1);
  const all = ids([first, second, third].flatMap((event) => event ?? []));
  await until(() => then.got.length === 3, { message: "all" });
  expect(ids(then.got)).toEqual(all);
  await until(() => there.got.length === 2, { message: "those after the first" });
  expect(ids(there.got)).toEqual(all.slice(1));
  await until(() => now.got.length === 2, { message: "the last" });
  expect(now.got[1]).toMatchObject({ type: "event", event: { id: third?.id } });
});

it("ends at `until` with the position of the end", async () => {
  using tapedeck = impatientClient({ url: harness.url });
  const writer = harness.writer("gus");
  const built = await writer.builds(4);
  const request = { developers: ["gus"], kinds: ["build.*"], after: "start" } as const;
  const third = built[2]?.position ?? "";
  const reading = following(tapedeck.subscribe({ ...request, until: third }));
  await reading.ended;
  expect(reading.got.at(-1)).toEqual({ type: "complete", position: third });
  expect(reading.got).toHaveLength(4);
  const all = following(tapedeck.events({ ...request, until: "now" }));
  await all.ended;
  expect(ids(all.got)).toEqual(ids(built));
  const none = following(tapedeck.events({ ...request, until: new Date(0) }));
  await none.ended;
  expect(none.got).toEqual([]);
});

it("gives the state first and once, then the events after it, across cuts too", async () => {
  using tapedeck = impatientClient({ url: harness.url });
  const writer = harness.writer("hal");
  await writer.builds(2);
  await harness.seeded.stack.caughtUp();
  const reading = following(tapedeck.subscribe({ sources: ["hal/shop"], state: true }));
  await until(() => reading.got.length === 2, { message: "state and caught_up" });
  expect(reading.got[0]).toMatchObject({
    type: "state",
    source: "acme/hal/shop/skaffold",
    state: { v1: { buildState: { artifacts: { web: "Complete" } } } },
  });
  await harness.stop();
  const built = await writer.builds(3);
  await harness.start();
  await until(() => reading.got.filter(({ type }) => type === "event").length === 3, { message: "the events" });
  const [state, caughtUp, ...rest] = reading.got;
  expect([state?.type, caughtUp?.type]).toEqual(["state", "caught_up"]);
  // The second connection's caught_up counts as another position.
  expect(rest.flatMap((message) => (message.type === "event" ? message.event.id : []))).toEqual(ids(built));
  expect(rest.filter(({ type }) => type === "state" || type === "caught_up")).toEqual([]);
});

it("a slow reader buffers little, does not slow down others, and gets every event", async () => {
  const notes = noting();
  using tapedeck = impatientClient({ url: harness.url, WebSocket: notes.WebSocket, maxWaiting: 20_000 });
  const writer = harness.writer("ida");
  const built = await writer.builds(400);
  const request = { developers: ["ida"], kinds: ["build.*"], after: "start" } as const;
  const slow = tapedeck.events(request)[Symbol.asyncIterator]();
  const got = [await slow.next()];
  const fast = following(tapedeck.events(request));
  await until(() => notes.said.some(({ type }) => type === "unsubscribe"), { message: "it to be too much" });
  await until(() => fast.got.length === 400, { message: "the other to have it" });
  // An iteration that is not read gets nothing more.
  const live = await writer.builds(5);
  await until(() => fast.got.length === 405, { message: "the other to go on" });
  const first = notes.said.filter(({ type }) => type === "subscribe");
  while (got.length < 405) got.push(await slow.next());
  expect(got.map(({ value }) => value.id)).toEqual(ids([...built, ...live]));
  expect(notes.sockets).toHaveLength(1);
  const again = notes.said.filter(({ type }) => type === "subscribe").slice(first.length);
  expect(again.length).toBeGreaterThan(5);
  await slow.return?.();
});

it("many subscriptions share a socket, up to the gateway's limit per socket", async () => {
  const notes = noting();
  using tapedeck = impatientClient({ url: harness.url, WebSocket: notes.WebSocket });
  const writers = ["jon", "kim", "lea"].map((developer) => ({ developer, writer: harness.writer(developer) }));
  const readings = Array.from({ length: 150 }, (_, index) => {
    const developer = writers[index % 3]?.developer ?? "";
    return { developer, ...following(tapedeck.subscribe({ developers: [developer], kinds: ["build.*"] })) };
  });
  await until(() => readings.every(({ got }) => got.length === 1), { message: "all to be there" });
  expect(notes.sockets).toHaveLength(3);
  const built = new Map<string, readonly string[]>();
  for (const { developer, writer } of writers) built.set(developer, ids(await writer.builds(4)));
  await until(() => readings.every(({ got }) => got.length === 5), { message: "everybody to have theirs" });
  for (const { developer, got } of readings) {
    const events = got.flatMap((message) => (message.type === "event" ? [message.event.id] : []));
    expect(events).toEqual(built.get(developer));
  }
});

it("the socket closes when the last reader ends, however its iteration ends", async () => {
  const notes = noting();
  using tapedeck = impatientClient({ url: harness.url, WebSocket: notes.WebSocket });
  const isClosed = () => notes.sockets.every((socket) => socket.isClosed);
  for await (const { type } of tapedeck.subscribe()) if (type === "caught_up") break;
  await until(isClosed, { message: "it to close after a break" });

  const over = new AbortController();
  const signalled = following(tapedeck.subscribe({ signal: over.signal }));
  await until(() => signalled.got.length === 1, { message: "it to read again" });
  over.abort();
  await signalled.ended;
  await until(isClosed, { message: "it to close after a signal" });

  const left = tapedeck.events()[Symbol.asyncIterator]();
  const next = left.next();
  await until(() => notes.sockets.length === 3, { message: "it to connect once more" });
  await left.return?.();
  expect(await next).toEqual({ done: true, value: undefined });
  await until(isClosed, { message: "it to close when it is left while it waits" });

  const closed = following(tapedeck.subscribe());
  await until(() => closed.got.length === 1, { message: "it to read once more" });
  tapedeck.close();
  await closed.ended;
  await until(isClosed, { message: "it to close with its client" });
  expect(notes.sockets).toHaveLength(4);
});

it("an iteration that ended before it began sends no request", async () => {
  using tapedeck = impatientClient({ url: "http://127.0.0.1:1" });
  const ended = following(tapedeck.events({ signal: AbortSignal.abort() }));
  await ended.ended;
  tapedeck.close();
  await following(tapedeck.sources()).ended;
});

describe("a refusal by the gateway is thrown", () => {
  const refused = async (items: AsyncIterable<unknown>) => {
    const error: unknown = await following(items).ended.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TapedeckError);
    return error as TapedeckError;
  };

  it("with its code and a suggestion", async () => {
    using tapedeck = impatientClient({ url: harness.url });
    await Promise.all([harness.writer("mia").written(), harness.writer("ned").written()]);
    await harness.seeded.stack.caughtUp();
    expect(await refused(tapedeck.events({ kinds: ["Build!"] }))).toMatchObject({
      code: "invalid_argument",
      field: "filter.kinds",
    });
    expect(await refused(tapedeck.events({ after: "1100-zzzzzz" }))).toMatchObject({ code: "position_foreign" });
    const future = await refused(tapedeck.events({ after: harness.seeded.at(9_999_999) }));
    expect(future).toMatchObject({ code: "position_future", latest: expect.stringContaining("-") });
    const ambiguous = await refused(tapedeck.subscribe({ state: true }));
    expect(ambiguous).toMatchObject({
      code: "ambiguous_source",
      choices: expect.arrayContaining(["acme/mia/shop/skaffold", "acme/ned/shop/skaffold"]),
    });
    expect(ambiguous.message).not.toBe("");
    await expect(tapedeck.state("nobody/shop")).rejects.toMatchObject({ code: "unknown_source" });
    expect(await refused(tapedeck.operations({ from: "yesterday" }))).toMatchObject({ field: "from" });
  });

  it("a server that is not Tapedeck is an error; an unreachable gateway is retried", async () => {
    using elsewhere = impatientClient({ url: `${harness.url}/elsewhere` });
    await expect(following(elsewhere.events()).ended).rejects.toThrow("/elsewhere/api/v1/ws");
    await harness.stop();
    using tapedeck = impatientClient({ url: harness.url });
    const reading = following(tapedeck.subscribe());
    await expect(tapedeck.state("mia/shop")).rejects.toThrow(TypeError);
    await harness.start();
    await until(() => reading.got.length === 1, { message: "it to be there" });
  });
});

describe("lists and states", () => {
  it("come page by page, as far as the caller reads", async () => {
    using tapedeck = impatientClient({ url: harness.url });
    const writer = harness.writer("ola");
    await writer.builds(300);
    await harness.seeded.stack.caughtUp();
    const subjects: string[] = [];
    for await (const { subject, kind } of tapedeck.operations({ developers: ["ola"], kinds: ["build"] })) {
      expect(kind).toBe("build");
      subjects.push(subject);
    }
    expect(subjects).toHaveLength(150);
    for await (const source of tapedeck.sources({ developers: ["ola"] })) expect(source.project).toBe("shop");
    const labelled = { developers: ["ola"], labels: { branch: "none" }, from: new Date(0) };
    for await (const session of tapedeck.sessions(labelled)) expect(session).toBeUndefined();
  });

  it("have the operations of one loop of a session", async () => {
    using tapedeck = impatientClient({ url: harness.url });
    const writer = harness.writer("lou");
    await writer.builds(2);
    writer.session.loopEnded("succeeded");
    writer.session.loopStarted();
    await writer.builds(4);
    await harness.seeded.stack.caughtUp();
    const all = await Array.fromAsync(tapedeck.operations({ developers: ["lou"] }));
    const { session, runner, loop } = all[0] ?? expect.fail();
    const own = await Array.fromAsync(tapedeck.operations({ sessions: [session], runner, loop }));
    expect(own).toEqual(all.filter((one) => one.loop === loop));
    expect([own.length > 0, own.length < all.length]).toEqual([true, true]);
    expect(await Array.fromAsync(tapedeck.operations({ sessions: [session], runner: runner + 1 }))).toEqual([]);
    await expect(Array.fromAsync(tapedeck.operations({ runner }))).rejects.toMatchObject({ field: "session" });
  });

  it("have the fields that their types declare", async () => {
    using tapedeck = impatientClient({ url: harness.url });
    const writer = harness.writer("ria");
    await writer.builds(2);
    await harness.seeded.stack.caughtUp();
    const ria = { developers: ["ria"] };
    const source: Record<keyof Source, true> = {
      source: true,
      workspace: true,
      developer: true,
      project: true,
      upstream: true,
      status: true,
      currentSession: true,
      lastEventAt: true,
      lastPosition: true,
      firstPosition: true,
      developerName: true,
      projectName: true,
      address: true,
      gaps: true,
      notHeardSince: true,
      lagMs: true,
      clockOffsetMs: true,
      heardAt: true,
    };
    const session: Record<keyof Session, true> = {
      session: true,
      source: true,
      labels: true,
      startedAt: true,
      endedAt: true,
      endReason: true,
      startPosition: true,
      endPosition: true,
      upstreamVersion: true,
      gaps: true,
      exitCode: true,
      commandLine: true,
      cause: true,
    };
    // Loops have labels, too.
    const operation: Record<Exclude<keyof Operation, "labels">, true> = {
      id: true,
      kind: true,
      subject: true,
      instance: true,
      source: true,
      session: true,
      runner: true,
      loop: true,
      startedAt: true,
      endedAt: true,
      durationMs: true,
      outcome: true,
      errorCode: true,
      error: true,
      cause: true,
      exitCode: true,
      cacheHit: true,
      platform: true,
      startPosition: true,
      endPosition: true,
    };
    const state: Record<keyof State, true> = {
      source: true,
      session: true,
      sessionEnded: true,
      notHeardSince: true,
      heardAt: true,
      position: true,
      at: true,
      upstream: true,
      state: true,
    };
    const fields = (thing: object | undefined) => Object.keys(thing ?? {}).sort();
    const [one, two, three] = await Promise.all([
      firstOf(tapedeck.sources(ria)),
      firstOf(tapedeck.sessions(ria)),
      firstOf(tapedeck.operations(ria)),
    ]);
    expect([one, two, three].map(fields)).toEqual([source, session, operation].map(fields));
    expect(fields(await tapedeck.state("ria/shop"))).toEqual(fields(state));
  });

  it("numbers have the fields that their types declare, grouped and filtered as asked", async () => {
    using tapedeck = impatientClient({ url: harness.url });
    const writer = harness.writer("sue");
    await writer.builds(4);
    writer.session.loopEnded("failed");
    await writer.written();
    await harness.seeded.stack.caughtUp();
    const { stats } = tapedeck;
    const sue = { developers: ["sue"], projects: ["shop"], from: new Date(0), labels: { branch: "main" } };
    const [loops, failures, green, builds, flakes, commands] = await Promise.all([
      stats.loops({ ...sue, group: ["developer", "label.branch"], zone: "Asia/Tokyo" }),
      stats.failures({ ...sue, group: ["phase"] }),
      stats.green(sue),
      stats.builds({ ...sue, artifacts: ["web"], group: ["artifact"] }),
      stats.flakes(sue),
      stats.commands(sue),
    ]);
    const loop: Record<keyof LoopFigures, unknown> = {
      loops: 1,
      failed: 1,
      overtaken: 0,
      overtakenShare: 0,
      waitedMs: expect.any(Number),
      readyP50Ms: null,
      readyP90Ms: null,
      readyP99Ms: null,
      untimed: 0,
      phases: Object.fromEntries(
        ["sync", "build", "test", "render", "deploy", "check", "other"].map((phase) => [
          phase,
          { waitedMs: expect.any(Number), share: expect.any(Number) },
        ]),
      ),
    };
    expect(loops.items).toEqual([{ developer: "sue", labels: { branch: "main" }, ...loop }]);
    const failure: Record<keyof FailureFigures, unknown> = { failures: 1, developers: 1 };
    expect(failures.items).toEqual([{ phase: "build", ...failure }]);
    const red: Record<keyof GreenFigures, unknown> = {
      red: 1,
      stillRed: 1,
      redP50Ms: null,
      redP90Ms: null,
      loopsBetween: 0,
    };
    expect(green.items).toEqual([red]);
    const build: Record<keyof BuildFigures, unknown> = {
      count: 2,
      failed: 1,
      failureRate: 0.5,
      cached: 0,
      canceled: 0,
      unknown: 0,
      untimed: 0,
      p50Ms: expect.any(Number),
      p90Ms: expect.any(Number),
      p99Ms: expect.any(Number),
    };
    expect(builds.items).toEqual([{ artifact: "web", ...build }]);
    const flake: Record<keyof FlakeFigures, unknown> = {
      builds: 2,
      failed: 1,
      flakes: 0,
      flakeRate: 0,
      developers: 0,
    };
    expect(flakes.items).toEqual([flake]);
    const command: Record<keyof CommandFigures, unknown> = {
      runs: 0,
      failed: 0,
      p50Ms: null,
      p90Ms: null,
      untimed: 0,
    };
    expect(commands.items).toEqual([command]);
    await expect(stats.loops({ zone: "Europe/Atlantis" })).rejects.toMatchObject({ field: "zone" });
  });

  it("are as of now, or as of a requested moment", async () => {
    using tapedeck = impatientClient({ url: harness.url });
    const writer = harness.writer("pia");
    const [first] = await writer.builds(1);
    await writer.builds(1);
    await harness.seeded.stack.caughtUp();
    const artifacts = async (at?: string) =>
      (await tapedeck.state("pia/shop", at === undefined ? {} : { at })).state.v1;
    expect(await artifacts()).toMatchObject({ buildState: { artifacts: { web: "In Progress" } } });
    const then = await tapedeck.state("pia/shop", { at: first?.position ?? "" });
    expect(then).toMatchObject({ position: first?.position, upstream: "skaffold", session: "01PIA" });
  });
});

it("events that are no longer kept cause an error, or are reported and skipped", async () => {
  using tapedeck = impatientClient({ url: harness.url });
  const writer = harness.writer("zoe");
  const built = await writer.builds(6);
  const [first, , third] = built;
  const request = { developers: ["zoe"], kinds: ["build.*"], after: first?.position ?? "" } as const;
  const connection = await connectNats({ servers: harness.seeded.stack.parts.nats.url });
  const seq = seqIn(third?.position) + 1;
  await (await jetstreamManager(connection)).streams.purge(streamOf("acme"), { seq });
  await connection.close();
  await expect(following(tapedeck.events(request)).ended).rejects.toMatchObject({
    code: "out_of_range",
    earliest: harness.seeded.endAt(seq - 1),
  });
  const gaps: Gap[] = [];
  const reading = following(tapedeck.events({ ...request, onGap: (gap) => gaps.push(gap) }));
  await until(() => reading.got.length === 3, { message: "what is kept" });
  expect(ids(reading.got)).toEqual(ids(built.slice(3)));
  expect(gaps).toEqual([{ after: first?.position, until: harness.seeded.endAt(seq - 1) }]);
});
