import { credentials, Metadata, status } from "@grpc/grpc-js";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import {
  type DeepPartial,
  EventsRequest,
  type EventsResponse,
  GetStateRequest,
  type GetStateResponse,
  TapedeckClient,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { randomHost } from "@tapedeck/query/testing/random-host";
import { type Random, randomEvents, seeded } from "@tapedeck/query/testing/random-scenario";
import { randomServer } from "@tapedeck/query/testing/random-server";
import { rktHost, rktSession } from "@tapedeck/query/testing/rkt-scenario";
import { scenario, shop } from "@tapedeck/query/testing/scenario";
import { vagrantSession, vagrantShop } from "@tapedeck/query/testing/vagrant-scenario";
import { folds } from "@tapedeck/query/views/folds";
import { endOf } from "@tapedeck/shared/log/offset";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { eventPosition, seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTokenStack, type TokenStack } from "../stack/token-stack.ts";

// State at P and the events after P are everything that happened, once: folding the events onto the state gives the same
// as folding from the beginning, at any moment and with any concurrent writers, also of another workspace.

/** The scenario of one source, and the part of it that is in the log. */
type Life = {
  readonly source: SourceName;
  readonly upstream: UpstreamName;
  readonly events: readonly Event[];
  /** In the log of its workspace. */
  readonly seqs: number[];
};

const cleanup = new AsyncDisposableStack();
let on: TokenStack["on"];
let client: TapedeckClient;
/** By workspace: what its callers send. */
const tokens = new Map<string, Metadata>();

const workspaceOf = ({ source }: Life) => sourceParts(source).workspace;
const tokenOf = (life: Life) => tokens.get(workspaceOf(life)) ?? expect.fail("no token");

beforeAll(async () => {
  const stack = cleanup.use(await startTokenStack());
  on = stack.on;
  for (const workspace of ["acme", "globex"]) {
    const token = new Metadata();
    token.set("authorization", `Bearer ${(await stack.token(workspace, ["viewer"])).text}`);
    tokens.set(workspace, token);
  }
  client = cleanup.adopt(new TapedeckClient(on.stack.grpc, credentials.createInsecure()), (one) => one.close());
});
afterAll(() => cleanup.disposeAsync());

function lives(random: Random): readonly Life[] {
  const host = scenario(rktHost);
  const server = scenario(vagrantShop);
  for (const session of ["01R1", "01R2"]) {
    const pods = rktSession(session, host);
    pods.began();
    randomHost(random, host, pods, 100);
    pods.ended();
    const vagrant = vagrantSession(session.replace("R", "V"), server);
    vagrant.began();
    randomServer(random, server, vagrant, { size: 100, firstJob: session === "01R1" ? 1 : 500 });
    vagrant.ended();
  }
  // An erased session no longer exists, even in the past.
  const loops = randomEvents(random, 1_200).filter(({ kind }) => kind !== "session.erased");
  const of = (name: string) => loops.filter(({ source }) => source === name);
  return [of(shop), of("globex/carol/site/skaffold"), host.events, server.events].map((events) => {
    const source = events[0]?.source as SourceName;
    return { source, upstream: source.split("/")[3] as UpstreamName, events, seqs: [] };
  });
}

/** The state of a session in its fold. */
type Folded = ReadonlyMap<string, unknown>;

function fold({ upstream }: Life, before: Folded, events: readonly Event[]): Folded {
  const { initial, evolve } = folds[upstream];
  const states = new Map(before);
  for (const event of events) states.set(event.session, evolve(states.get(event.session) ?? initial, event));
  return states;
}

/** The part of such a state that the API returns; Vagrant's jobs are kept separately. */
function rendered({ upstream }: Life, states: Folded, session: string): Rows {
  const { initial, collections } = folds[upstream];
  return Object.fromEntries(
    Object.entries(collections).flatMap(([name, collection]) => {
      if (collection.of === "tables") return [];
      const items = collection.items(states.get(session) ?? initial);
      return [[`${upstream}.${name}`, items.map(({ key, bytes }) => [key, Buffer.from(bytes).toString("base64")])]];
    }),
  );
}

function given({ upstream }: Life, { rows }: GetStateResponse): Rows {
  const folded = Object.entries(folds[upstream].collections).filter(([, collection]) => collection.of === "state");
  return Object.fromEntries(
    folded.map(([name]) => [
      `${upstream}.${name}`,
      rows
        .filter(({ collection }) => collection === `${upstream}.${name}`)
        .map(({ key, message }) => [key, message?.value.toString("base64") ?? ""] as const),
    ]),
  );
}

/** By collection: the key of each row, and its message in base64. */
type Rows = Record<string, readonly (readonly [string, string])[]>;

const seqOf = (position: string) => seqIn(position);

function getState(life: Life, request: DeepPartial<GetStateRequest> = {}): Promise<GetStateResponse> {
  const { source } = life;
  return new Promise((resolve, reject) => {
    client.getState(GetStateRequest.fromPartial({ source, ...request }), tokenOf(life), (error, response) =>
      error === null ? resolve(response) : reject(error),
    );
  });
}

/** A reader that runs until the test is over: its first state, and the events after it. */
type Reader = {
  readonly life: Life;
  readonly how: string;
  state?: GetStateResponse;
  readonly events: Event[];
  seen: number;
};

type PositionAndTime = { readonly position: string; readonly time: string };

const ways = {
  "GetState, then Events": (reader: Reader) => stateThenEvents(reader, {}),
  "GetState at a position, then Events": (reader: Reader, { position }: PositionAndTime) =>
    stateThenEvents(reader, { at: position }),
  "GetState at a time, then Events": (reader: Reader, { time }: PositionAndTime) =>
    stateThenEvents(reader, { at: time }),
  "Events with the state": (reader: Reader) => events(reader, { state: true }),
  "Events with the state at a position": (reader: Reader, { position }: PositionAndTime) =>
    events(reader, { state: true, after: position }),
  "Events with the state at a time": (reader: Reader, { time }: PositionAndTime) =>
    events(reader, { state: true, after: time }),
};

async function stateThenEvents(reader: Reader, at: { readonly at?: string }): Promise<void> {
  reader.state = await whenReady(() => getState(reader.life, at));
  await events(reader, { after: reader.state.position });
}

async function events(reader: Reader, request: DeepPartial<EventsRequest>): Promise<void> {
  const filter = { sources: [reader.life.source] };
  const messages = await whenReady(() => opened(reader.life, { ...request, filter, original: true }));
  for await (const { position, body } of messages) {
    if (body?.$case === "state") reader.state = body.value;
    else reader.seen = seqOf(position);
    if (body?.$case === "event" && body.value.event !== undefined) reader.events.push(body.value.event);
  }
}

/** Returns the messages of a stream that has begun. */
async function opened(life: Life, request: DeepPartial<EventsRequest>): Promise<AsyncIterable<EventsResponse>> {
  const call = client.events(EventsRequest.fromPartial(request), tokenOf(life));
  cleanup.defer(() => call.cancel());
  await new Promise((resolve, reject) => call.once("metadata", resolve).once("error", reject));
  call.on("error", () => {});
  return call as AsyncIterable<EventsResponse>;
}

/** Query may be behind by more than it waits: `not_ready` means to try again. */
async function whenReady<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== status.UNAVAILABLE) throw error;
    }
  }
}

it("state, then live events, is complete and without repeats at any moment while others write", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const random = seeded(seed);
  const all = lives(random);
  const readers: Reader[] = [];
  const running: Promise<void>[] = [];
  const writeSome = async (life: Life, max: number) => {
    const fresh = life.events.slice(life.seqs.length, life.seqs.length + 1 + random(max));
    life.seqs.push(...(await on.write(fresh)));
  };
  const begin = async (life: Life, how: keyof typeof ways) => {
    const seq = life.seqs[random(life.seqs.length)] ?? 0;
    const { epoch, reader: log } = await on.stack.logs.of(workspaceOf(life));
    const [recorded] = await Array.fromAsync(
      log.history({ afterOffset: endOf(seq - 1), subjects: [] }, endOf(seq), AbortSignal.timeout(60_000)),
    );
    const point = { position: eventPosition(epoch, seq), time: recorded?.recordedAt.toISOString() ?? "" };
    const reader: Reader = { life, how, events: [], seen: 0 };
    readers.push(reader);
    running.push(ways[how](reader, point));
  };

  for (const life of all) await writeSome(life, 30);
  await on.stack.caughtUp();
  await Promise.all(
    all.map(async (life) => {
      for (let round = 0; life.seqs.length < life.events.length; round++) {
        const writing = writeSome(life, 40);
        const how = Object.keys(ways)[round % Object.keys(ways).length] as keyof typeof ways;
        await begin(life, how);
        await writing;
      }
    }),
  );
  const failure = Promise.race(running.map((one) => one.then(() => new Promise<void>(() => {}))));
  const arrived = () => readers.every(({ life, seen }) => seen >= (life.seqs.at(-1) ?? 0));
  await Promise.race([until(arrived, { message: "all readers to have all" }), failure]);
  await on.stack.caughtUp();

  for (const life of all) {
    const { source } = life;
    const now = await getState(life);
    const folded = fold(life, new Map(), life.events);
    expect({ seed, source, rows: given(life, now) }).toEqual({
      seed,
      source,
      rows: rendered(life, folded, now.session),
    });
    for (const { how, state, events } of readers.filter((reader) => reader.life === life)) {
      const what = { seed, source, how, position: state?.position };
      const before = life.events.filter((_, index) => (life.seqs[index] ?? 0) <= seqOf(state?.position ?? ""));
      const known = fold(life, new Map(), before);
      expect({ ...what, rows: state && given(life, state) }).toEqual({
        ...what,
        rows: rendered(life, known, state?.session ?? ""),
      });
      expect({ ...what, rows: rendered(life, fold(life, known, events), now.session) }).toEqual({
        ...what,
        rows: given(life, now),
      });
      expect({ ...what, ids: events.map(({ id }) => id) }).toEqual({
        ...what,
        ids: life.events.slice(before.length).map(({ id }) => id),
      });
    }
  }
  expect(readers.length).toBeGreaterThan(25);
});
