import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Client, credentials, Metadata, type ServiceError, type StatusObject } from "@grpc/grpc-js";
import { Event, Original } from "@tapedeck/proto/tapedeck/v1/event";
import { type HistoryRequest, ListRequest, type ReadStateRequest } from "@tapedeck/proto/tapedeck/v1/query";
import {
  type DeepPartial,
  EventsRequest,
  EventsResponse,
  GetStateRequest,
  ListOperationsRequest,
  ListSessionsRequest,
  ListSourcesRequest,
  SearchRequest,
  TapedeckClient,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { endOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { endPosition, eventPosition, seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ListsJson, listsJson } from "../../apis/tapedeck/lists.ts";
import { parameters, type RawParameters, readParameters } from "../../apis/tapedeck/parameters.ts";
import { tapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import { callerLimits } from "../../limits/limits.ts";
import { defaultLimits } from "../../limits/settings.ts";
import { gatewayMetrics } from "../../metrics.ts";
import { positions } from "../../positions.ts";
import type { QueryClient } from "../../query-client.ts";
import { asBytes } from "./byte-methods.ts";
import { grpcServer } from "./server.ts";
import { tapedeckServices } from "./tapedeck-service.ts";
import { letsAllIn } from "./testing/lets-all-in.ts";

const sourceOf = (developer: string, upstream: string) =>
  sourceName({ workspace: "default", developer, project: "shop", upstream });
const alice = sourceOf("alice", "rkt");
const bob = sourceOf("bob", "skaffold");

const stack = new AsyncDisposableStack();
const states: Partial<ReadStateRequest>[] = [];
const lists: ListRequest[] = [];
const searches: Partial<HistoryRequest>[] = [];
let log: Log;
let api: ReturnType<typeof tapedeckApi>;
let write: { readonly alice: ReturnType<typeof testWriter>; readonly bob: ReturnType<typeof testWriter> };
let client: TapedeckClient;
let address: string;
/** Bytes of all calls. */
let given = 0;
const at = (seq: number) => eventPosition(log.epoch, seq);

/** Answers for query: one source, a rkt host, and lists of nothing. */
const query: Pick<QueryClient, "listSources" | "listSessions" | "listOperations" | "search" | "readState"> = {
  async listSources(request) {
    lists.push(ListRequest.fromPartial(request));
    const upstream = request.developers?.[0] === "carol" ? "vagrant" : "rkt";
    const item = { source: alice, upstream, current_session: "01A" };
    return { items: request.limit === 50 ? [item as never] : [], next_page: "", position: at(3) };
  },
  async listSessions(request) {
    lists.push(ListRequest.fromPartial(request));
    return { items: [], next_page: "more", position: at(3) };
  },
  async listOperations(request) {
    lists.push(ListRequest.fromPartial(request));
    return { items: [], next_page: "", position: at(3) };
  },
  async search({ filter, text, reasons }) {
    searches.push({ text, reasons });
    lists.push(ListRequest.fromPartial(filter ?? {}));
    return { items: [], next_page: "", position: at(3), total: text === "" ? undefined : 0, total_is_minimum: false };
  },
  async readState(request) {
    states.push(request);
    const rows = [request.collection ?? "", ...(request.also ?? [])]
      .filter((collection) => collection !== "rkt.info")
      .map((collection) => ({ collection, key: `${collection} 1`, bytes: Buffer.from(collection) }));
    return {
      head: { source: alice, session: "01A", session_ended: true, position: at(3), newest_source: at(3), heard_at: {} },
      rows,
    };
  },
};

beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  log = stack.use(await openLog(connection, { workspace: "default", syncKnown: true, timeoutMs: 20_000 }));
  write = { alice: testWriter(log.writer, alice), bob: testWriter(log.writer, bob) };
  await write.alice.append(2);
  await write.bob.append(1, {
    original: Original.fromPartial({ type: "x", bytes: Buffer.from("verbatim"), size: 8n }),
  });
  api = tapedeckApi({
    query: query as QueryClient,
    log: () => log.reader,
    positions: positions(() => log.reader),
    services: { waiting: async function* () {} },
    compareDevelopers: false,
    ...callerLimits({ ...defaultLimits, largeAnswers: 1 }),
  });
  const { watch } = gatewayMetrics(createMetrics("test"), silentLogger);
  const counted = {
    watch: {
      ...watch("tapedeck grpc"),
      sent: (bytes: number) => {
        given += bytes;
      },
    },
    unreadBytes: defaultLimits.unreadBytes,
  };
  const caller = () => ({ workspace: "default", who: "test", kind: "token" as const });
  const services = [tapedeckServices(api, caller, counted)];
  address = stack.use(await grpcServer({ host: "127.0.0.1", port: 0 }, services, letsAllIn)).address;
  client = stack.adopt(new TapedeckClient(address, credentials.createInsecure()), (one) => one.close());
});
afterAll(() => stack.disposeAsync());

const metadata = (fields: Readonly<Record<string, string>>) => {
  const made = new Metadata();
  for (const [name, value] of Object.entries(fields)) made.set(name, value);
  return made;
};

type Unary<Request, Response> = (
  request: Request,
  metadata: Metadata,
  done: (error: ServiceError | null, response: Response) => void,
) => { once(event: "metadata", got: (head: Metadata) => void): unknown };

/** Response and headers of a call; rejects with the error of the status. */
function ask<Request, Response>(method: Unary<Request, Response>, request: Request, fields = {}) {
  return new Promise<{ response: Response; head: Metadata }>((resolve, reject) => {
    let head = new Metadata();
    method
      .call(client, request, metadata(fields), (error, response) => {
        if (error === null) resolve({ response, head });
        else reject(fromServiceError(error));
      })
      .once("metadata", (got) => {
        head = got;
      });
  });
}

/** A subscription: what has come of it, its headers and its end. */
function open(request: DeepPartial<EventsRequest>, fields: Readonly<Record<string, string>> = {}) {
  const call = client.events(EventsRequest.fromPartial(request), metadata(fields));
  stack.defer(() => call.cancel());
  const got: EventsResponse[] = [];
  const head = new Promise<Metadata>((resolve) => call.once("metadata", resolve));
  const status = new Promise<StatusObject>((resolve) => call.once("status", resolve));
  const failed = new Promise<ServiceError>((resolve) => call.on("error", resolve));
  return {
    got,
    head,
    status,
    failed,
    call,
    read: () => call.on("data", (message: EventsResponse) => got.push(message)),
    reported: () => got.map(({ position, body }) => `${body?.$case} ${seqIn(position)}`),
  };
}

const bytesOf = (messages: readonly EventsResponse[]) =>
  messages.reduce((sum, message) => sum + EventsResponse.encode(message).finish().byteLength, 0);

describe("Events", () => {
  it("sends its headers at once, also when nothing happens, then what does, until the client leaves", async () => {
    const live = open({ filter: { developers: ["alice"] } });
    live.read();
    const [position] = (await live.head).get("tapedeck-position");
    const lastSeq = sequenceOf((await log.reader.bounds()).lastOffset);
    expect(position).toBe(endPosition(log.epoch, lastSeq));
    await until(() => live.got.length === 1, { message: "caught_up" });
    const last = await write.alice.append(2);
    await until(() => live.got.length === 3, { message: "two events" });
    expect(live.reported()).toEqual([`caught_up ${lastSeq}`, `event ${last - 1}`, `event ${last}`]);
    live.call.cancel();
    expect((await live.status).code).toBe(1);
  });

  it("with an end ends there, with complete and OK", async () => {
    const all = open({ after: "start", until: at(3) });
    all.read();
    expect((await all.status).code).toBe(0);
    expect(all.reported()).toEqual(["event 1", "event 2", "event 3", "complete 3"]);
  });

  it.each([
    [false, ""],
    [true, "verbatim"],
  ])("with original %s has the upstream's own bytes accordingly, and all else", async (original, bytes) => {
    const one = open({ after: at(2), until: at(3), original });
    one.read();
    await one.status;
    const [recorded] = await Array.fromAsync(
      log.reader.history({ afterOffset: endOf(2), subjects: [] }, endOf(3), AbortSignal.timeout(60_000)),
    );
    const reported = one.got[0]?.body?.$case === "event" ? one.got[0].body.value : undefined;
    expect(reported?.event?.original?.bytes.toString() ?? "").toBe(bytes);
    const rest = (event: Event | undefined) => Event.encode({ ...(event as Event), original: undefined }).finish();
    expect(rest(reported?.event)).toEqual(rest(recorded?.event));
    const ms = Number(reported?.recorded_at?.seconds) * 1_000 + (reported?.recorded_at?.nanos ?? 0) / 1e6;
    expect(ms).toBe(recorded?.recordedAt.getTime());
  });

  it("begins with the state, in the upstream's messages", async () => {
    const one = open({ state: true, after: at(3), until: at(3), filter: { sources: ["alice/shop"] } });
    one.read();
    expect((await one.status).code).toBe(0);
    expect(one.reported()).toEqual(["state 3", "complete 3"]);
    const body = one.got[0]?.body;
    expect(
      body?.$case === "state" && body.value.rows.map(({ message }) => [message?.type_url, String(message?.value)]),
    ).toEqual([
      ["type.googleapis.com/v1alpha.Pod", "rkt.pods"],
      ["type.googleapis.com/v1alpha.Image", "rkt.images"],
    ]);
  });

  it("lets go of a large state as soon as it is sent: others get theirs while it goes on", async () => {
    const request = { state: true, filter: { sources: ["carol/shop"] } };
    const first = open(request);
    first.read();
    await until(() => first.got.length === 2, { message: "caught_up" });
    const second = open(request);
    second.read();
    await until(() => second.got.length === 2, { message: "another's caught_up" });
  });

  it("is refused with what to do where it is larger than the client accepts", async () => {
    const request = GetStateRequest.fromPartial({ source: "alice/shop", max_message_bytes: 100 });
    await expect(ask(client.getState, request)).rejects.toMatchObject({
      code: "limit_exceeded",
      message: expect.stringMatching(
        /^the answer has \d+ bytes, more than 100: set max_message_bytes to .* over HTTP$/,
      ),
    });
  });

  it("goes by metadata where the fields say nothing, and by the fields where they do", async () => {
    const place = { "tapedeck-after": at(1), "tapedeck-source": "bob/shop" };
    const byMetadata = open({ until: at(3) }, place);
    byMetadata.read();
    await byMetadata.status;
    expect(byMetadata.reported()).toEqual(["event 3", "complete 3"]);
    const byFields = open({ after: "start", until: at(3), filter: { sources: ["alice/shop"] } }, place);
    byFields.read();
    await byFields.status;
    expect(byFields.reported()).toEqual(["event 1", "event 2", "complete 3"]);
  });

  it("gives no more to who does not read than may wait, and all of it to who reads on", async () => {
    const after = sequenceOf((await log.reader.bounds()).lastOffset);
    const original = Original.fromPartial({ type: "x", bytes: Buffer.alloc(100_000), size: 100_000n });
    for (let round = 0; round < 10; round++) await write.alice.append(10, { original });
    const request = { after: at(after), until: at(after + 100), original: true };
    const windows = 256 * 1024; // what HTTP/2 takes without asking anybody
    given = 0;
    const session = connectHttp2(`http://${address}`);
    stack.defer(() => session.destroy());
    const slow = session.request({
      ":method": "POST",
      ":path": "/tapedeck.v1.Tapedeck/Events",
      "content-type": "application/grpc",
      te: "trailers",
    });
    const message = Buffer.from(EventsRequest.encode(EventsRequest.fromPartial(request)).finish());
    slow.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.byteLength]), message]));
    await once(slow, "response");
    await until(() => given >= defaultLimits.unreadBytes / 2, { message: "what may wait" });
    const fast = open(request);
    fast.read();
    // By the time that another one has had all, whatever would have come to the first one has.
    await fast.status;
    expect(fast.got.length).toBe(101);
    expect(given - bytesOf(fast.got)).toBeLessThan(defaultLimits.unreadBytes + windows + 200_000);
    let got = 0;
    slow.on("data", (chunk: Buffer) => {
      got += chunk.byteLength;
    });
    await once(slow, "end");
    expect(got - 5 * 101).toBe(bytesOf(fast.got));
  });

  it.each([
    ["after", { after: "yesterday" }],
    ["until", { until: "yesterday" }],
    ["filter.kinds", { filter: { kinds: ["Build"] } }],
    ["filter.sources", { filter: { sources: ["alice"] } }],
  ])("is refused for a wrong %s", async (field, request) => {
    const one = open(request);
    one.read();
    const error = await one.failed;
    expect(error.code).toBe(3);
    expect(fromServiceError(error)).toMatchObject({ code: "invalid_argument", details: { field } });
  });
});

describe("GetState", () => {
  it("gives the upstream's own bytes, with their types, and whose they are", async () => {
    const request = GetStateRequest.fromPartial({ source: "alice/shop", at: at(3) });
    const { response, head } = await ask(client.getState, request);
    const row = (collection: string, type: string) => {
      const message = { type_url: `type.googleapis.com/${type}`, value: Buffer.from(collection) };
      return { collection, key: `${collection} 1`, message, position: at(3) };
    };
    expect(response).toMatchObject({
      source: alice,
      session: "01A",
      session_ended: true,
      upstream: "rkt",
      position: at(3),
      at: at(3),
      rows: [row("rkt.pods", "v1alpha.Pod"), row("rkt.images", "v1alpha.Image")],
    });
    const heads = ["tapedeck-position", "tapedeck-session", "tapedeck-session-ended"].map((name) => head.get(name)[0]);
    expect(heads).toEqual([at(3), "01A", "true"]);
  });

  it("goes by metadata where the fields say nothing, and by the fields where they do", async () => {
    const place = { "tapedeck-source": "alice/shop", "tapedeck-session": "01A", "tapedeck-at": at(1) };
    await ask(client.getState, GetStateRequest.create(), { ...place, "tapedeck-min-position": at(2) });
    const also = ["rkt.pods", "rkt.images"];
    const request = { source: alice, session: "01A", at: at(1), min_position: at(2), collection: "rkt.info", also };
    expect(states.splice(-1)).toMatchObject([request]);
    const other = { source: "alice/shop/rkt", session: "01B", at: at(2), min_position: at(3) };
    await ask(client.getState, GetStateRequest.fromPartial(other), place);
    expect(states.splice(-1)).toMatchObject([{ ...other, source: alice }]);
  });
});

describe("lists", () => {
  const filter = { developers: ["Alice"], projects: ["shop"], upstreams: ["rkt"], sources: ["Alice/Shop/rkt"] };
  const inUrl = { developer: ["Alice"], project: ["shop"], upstream: ["rkt"], source: ["Alice/Shop/rkt"] };
  const from = { seconds: 1_790_000_000n, nanos: 0 };
  const fromUrl = new Date(Number(from.seconds) * 1_000).toISOString();
  const paged = { limit: 7, page: "p", at: "2026-11-20T09:00:00+01:00" };
  const pagedUrl = { limit: ["7"], page: ["p"], at: ["2026-11-20T09:00:00 01:00"] };

  const lastRequest = async (asking: Promise<unknown>) => {
    await asking;
    return lists.at(-1);
  };
  const context = { workspace: "default" };
  const http = (name: keyof ListsJson, given: RawParameters) =>
    lastRequest(listsJson(api.lists)[name](context, readParameters(parameters[name], given)));

  it("ask query for what HTTP's ask for", async () => {
    const ofLists = { ...paged, labels: { branch: "main" }, artifacts: ["web", "api"] };
    const ofListsUrl = { ...pagedUrl, session: ["01A"], label: ["branch=main"], artifact: ["web", "api"] };
    const sources = { filter: { ...filter, sessions: ["01A"] }, ...ofLists };
    const found = await lastRequest(ask(client.listSources, ListSourcesRequest.fromPartial(sources)));
    expect(found).toMatchObject({ sessions: ["01A"], labels: { branch: "main" }, artifacts: ["web", "api"] });
    expect(found).toEqual(await http("sources", { ...inUrl, ...ofListsUrl }));
    expect(await lastRequest(ask(client.listSessions, ListSessionsRequest.fromPartial({ ...sources, from })))).toEqual(
      await http("sessions", { ...inUrl, ...ofListsUrl, from: [fromUrl] }),
    );
    const expected = { sessions: ["01A"], kinds: ["build", "app"], subjects: ["web"], outcomes: ["failed"] };
    const operations = { filter: { ...filter, ...expected }, ...ofLists, to: from, per_source: 3 };
    const expectedUrl = { kind: ["build", "app"], subject: ["web"], outcome: ["failed"] };
    expect(await lastRequest(ask(client.listOperations, ListOperationsRequest.fromPartial(operations)))).toEqual(
      await http("operations", { ...inUrl, ...ofListsUrl, ...expectedUrl, to: [fromUrl], per_source: ["3"] }),
    );
    expect(await lastRequest(ask(client.listSources, ListSourcesRequest.create()))).toEqual(await http("sources", {}));
  });

  it("search for what HTTP's search does", async () => {
    const { at: _, ...own } = paged;
    const { at: __, ...ownUrl } = pagedUrl;
    const fields = { sessions: ["01A"], kinds: ["loop", "session"], outcomes: ["failed"] };
    const labels = { branch: "main" };
    const more = { text: "no such file", reasons: ["timeout"], labels, artifacts: ["web"], from };
    const request = { filter: { ...filter, ...fields }, ...own, ...more };
    const found = await lastRequest(ask(client.search, SearchRequest.fromPartial(request)));
    expect(found).toMatchObject({ ...fields, labels, artifacts: ["web"], from });
    expect(found).toEqual(
      await http("search", {
        ...inUrl,
        ...ownUrl,
        session: ["01A"],
        kind: ["loop", "session"],
        artifact: ["web"],
        outcome: ["failed"],
        label: ["branch=main"],
        q: ["no such file"],
        reason: ["timeout"],
        from: [fromUrl],
      }),
    );
    const [byGrpc, byHttp] = searches.slice(-2);
    expect(byGrpc).toEqual({ text: "no such file", reasons: ["timeout"] });
    expect(byHttp).toEqual(byGrpc);
  });

  it("come with their position and next page", async () => {
    const { response, head } = await ask(client.listSessions, ListSessionsRequest.create());
    expect(response).toMatchObject({ items: [], next_page: "more", position: at(3) });
    expect(head.get("tapedeck-position")).toEqual([at(3)]);
  });

  it("go by metadata where the fields say nothing", async () => {
    const place = { "tapedeck-source": "bob/shop", "tapedeck-session": "01B", "tapedeck-at": at(1) };
    expect(await lastRequest(ask(client.listSessions, ListSessionsRequest.create(), place))).toMatchObject({
      sources: ["bob/shop"],
      sessions: ["01B"],
      at: at(1),
    });
    const request = ListSourcesRequest.fromPartial({ filter: { developers: ["alice"] }, at: at(2) });
    expect(await lastRequest(ask(client.listSources, request, place))).toMatchObject({
      developers: ["alice"],
      sources: [],
      sessions: ["01B"],
      at: at(2),
    });
  });

  it.each([
    ["sources can't have", "filter.kinds", () => ask(client.listSources, wrong(ListSourcesRequest, { kinds: ["a"] }))],
    [
      "sessions can't have",
      "filter.outcomes",
      () => ask(client.listSessions, wrong(ListSessionsRequest, { outcomes: ["failed"] })),
    ],
    [
      "is no kind of operation",
      "filter.kinds",
      () => ask(client.listOperations, wrong(ListOperationsRequest, { kinds: ["build.failed"] })),
    ],
    [
      "is no outcome",
      "filter.outcomes",
      () => ask(client.listOperations, wrong(ListOperationsRequest, { outcomes: ["good"] })),
    ],
    ["a search can't have", "filter.subjects", () => ask(client.search, wrong(SearchRequest, { subjects: ["web"] }))],
    [
      "is too many",
      "artifact",
      () => ask(client.listSources, ListSourcesRequest.fromPartial({ artifacts: Array(101).fill("web") })),
    ],
    ["is no unit", "filter.kinds", () => ask(client.search, wrong(SearchRequest, { kinds: ["build"] }))],
    ["has no past", "at", () => ask(client.search, SearchRequest.create(), { "tapedeck-at": at(1) })],
    ["is too much", "limit", () => ask(client.listSources, ListSourcesRequest.fromPartial({ limit: 1_001 }))],
  ] as const)("are refused for what %s: %s", async (_, field, asking) => {
    await expect(asking()).rejects.toMatchObject({ code: "invalid_argument", details: { field } });
  });

  function wrong<Request>(type: { fromPartial(of: { filter: object }): Request }, filter: object): Request {
    return type.fromPartial({ filter });
  }
});

it("bytes that are no request are refused by name", async () => {
  const raw = stack.adopt(new Client(address, credentials.createInsecure()), (one) => one.close());
  const { requestSerialize, responseDeserialize } = asBytes;
  const error = await new Promise<ServiceError | null>((resolve) => {
    const path = "/tapedeck.v1.Tapedeck/GetState";
    raw.makeUnaryRequest(path, requestSerialize, responseDeserialize, Buffer.from([0x0a, 0x05]), resolve);
  });
  expect(error).toMatchObject({ code: 3, details: expect.stringContaining("/tapedeck.v1.Tapedeck/GetState") });
});
