import { defaultBounds } from "@tapedeck/shared/audit/store";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { eventPosition, seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Gateway, startGateway } from "./gateway.ts";
import { defaultLimits } from "./limits/settings.ts";

const alice = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "skaffold" });
const other = sourceName({ workspace: "other", developer: "eve", project: "shop", upstream: "skaffold" });

type Message = {
  readonly type: string;
  readonly id?: string;
  readonly position?: string;
  readonly event?: { readonly ordinal: number; readonly kind: string; readonly source: string };
  readonly error?: { readonly code: string; readonly field?: string; readonly latest?: string };
};

const stack = new AsyncDisposableStack();
let gateway: Gateway;
let http: string;
let epoch: string;
let write: ReturnType<typeof testWriter>;

beforeAll(async () => {
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const log = stack.use(await openLog(connection, { workspace: "default", syncKnown: true, timeoutMs: 20_000 }));
  epoch = log.epoch;
  write = testWriter(log.writer, alice);
  await write.append(3);
  await write.append(2, { kind: "build.failed", subject: "web", outcome: 2 });
  const others = stack.use(await openLog(connection, { workspace: "other", syncKnown: true, timeoutMs: 20_000 }));
  await testWriter(others.writer, other).append(4);
  gateway = stack.use(
    await startGateway(
      {
        grpc: { host: "127.0.0.1", port: 0 },
        http: { host: "127.0.0.1", port: 0 },
        nats: { url: nats.url, user: undefined, password: undefined, syncAlways: true },
        query: "127.0.0.1:1",
        ingest: "127.0.0.1:1",
        servicesKey: "",
        servicesCa: undefined,
        workspace: "default",
        hosts: [],
        origins: [],
        endpoints: [],
        auth: "none",
        privacy: { developers: "shown", compareDevelopers: false },
        oidc: undefined,
        audit: defaultBounds,
        tls: undefined,
        limits: defaultLimits,
        sinks: { sinks: [], allowed: [], page: "" },
      },
      silentLogger,
    ),
  );
  http = gateway.addresses.http ?? "";
});

afterAll(() => stack.disposeAsync());

const ask = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`http://${http}${path}`, { headers });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
};

/** A client that keeps what it was sent. */
async function client(protocol: string | undefined = "tapedeck.v1.json") {
  const socket = new WebSocket(`ws://${http}/api/v1/ws`, protocol);
  const got: Message[] = [];
  const closed = new Promise<number>((resolve) => socket.once("close", resolve));
  socket.on("message", (data) => got.push(JSON.parse(String(data)) as Message));
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  return {
    got,
    closed,
    send: (message: unknown) => socket.send(typeof message === "string" ? message : JSON.stringify(message)),
    events: (id = "a") => got.filter((message) => message.type === "event" && message.id === id),
    [Symbol.dispose]: () => socket.terminate(),
  };
}

/** Reads a response's lines until the condition holds. */
async function lines(path: string, accept: string, enough: (all: readonly string[]) => boolean, extra = {}) {
  const over = new AbortController();
  const response = await fetch(`http://${http}${path}`, { headers: { accept, ...extra }, signal: over.signal });
  const all: string[] = [];
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    all.push(...parts);
    if (enough(all)) break;
  }
  over.abort();
  return all;
}

describe("the WebSocket", () => {
  it("gives history, says when it has caught up, then gives what happens", async () => {
    using reader = await client();
    reader.send({ type: "subscribe", id: "a", after: "start", filter: { sources: ["alice/shop"] } });
    await until(() => reader.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
    const history = reader.events().length;
    expect(reader.got[history]).toMatchObject({ type: "caught_up", id: "a" });
    await write.append(2);
    await until(() => reader.events().length >= history + 2, { message: "two live events" });
    const ordinals = reader.events().map(({ event }) => event?.ordinal);
    expect(ordinals).toEqual(ordinals.map((_, index) => index + 1));
    const positions = reader.events().map(({ position }) => seqIn(position));
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
  });

  it("resumes after any position, once each", async () => {
    using reader = await client();
    reader.send({ type: "subscribe", id: "a", after: eventPosition(epoch, 2), filter: { developers: ["alice"] } });
    await until(() => reader.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
    expect(reader.events()[0]).toMatchObject({ position: eventPosition(epoch, 3) });
  });

  it("carries several subscriptions with filters of their own", async () => {
    using reader = await client();
    reader.send({ type: "subscribe", id: "failures", after: "start", filter: { kinds: ["*.failed"] } });
    reader.send({ type: "subscribe", id: "starts", after: "start", filter: { kinds: ["build.started"] } });
    await until(() => reader.got.filter(({ type }) => type === "caught_up").length === 2, { message: "both" });
    expect(new Set(reader.events("failures").map(({ event }) => event?.kind))).toEqual(new Set(["build.failed"]));
    expect(new Set(reader.events("starts").map(({ event }) => event?.kind))).toEqual(new Set(["build.started"]));
  });

  it("shows nothing of another workspace, whatever the filter", async () => {
    using reader = await client();
    reader.send({ type: "subscribe", id: "a", after: "start" });
    reader.send({ type: "subscribe", id: "b", after: "start", filter: { sources: [other], developers: ["eve"] } });
    await until(() => reader.got.filter(({ type }) => type === "caught_up").length === 2, { message: "both" });
    expect(reader.events("b")).toEqual([]);
    expect(reader.events("a").every(({ event }) => event?.source === alice)).toBe(true);
  });

  it("stops a subscription with complete, and its id is free again", async () => {
    using reader = await client();
    reader.send({ type: "subscribe", id: "a", after: "start" });
    await until(() => reader.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
    reader.send({ type: "unsubscribe", id: "a" });
    await until(() => reader.got.at(-1)?.type === "complete", { message: "complete" });
    reader.send({ type: "subscribe", id: "a", after: "now" });
    await until(() => reader.got.filter(({ type }) => type === "caught_up").length === 2, {
      message: "caught_up again",
    });
  });

  it.each([
    [
      { type: "subscribe", id: "a", after: "yesterday" },
      { code: "invalid_argument", field: "after" },
    ],
    [{ type: "subscribe", id: "a", after: eventPosition("zzzzzz", 1) }, { code: "position_foreign" }],
    [
      { type: "subscribe", id: "a", filter: { kinds: ["nope.*"] } },
      { code: "invalid_argument", field: "filter.kinds" },
    ],
    [{ type: "subscribe", id: "a", colour: "red" }, { code: "invalid_argument" }],
    [{ type: "dance" }, { code: "invalid_argument" }],
  ])("answers %j with the error and stays open", async (message, error) => {
    using reader = await client();
    reader.send(message);
    await until(() => reader.got.length > 0, { message: "an answer" });
    expect(reader.got[0]).toMatchObject({ type: "error", error });
    reader.send({ type: "ping" });
    await until(() => reader.got.some(({ type }) => type === "pong"), { message: "pong" });
  });

  it("says where the log ends to a position beyond it", async () => {
    using reader = await client();
    reader.send({ type: "subscribe", id: "a", after: eventPosition(epoch, 999_999) });
    await until(() => reader.got.length > 0, { message: "an answer" });
    expect(reader.got[0]?.error).toMatchObject({
      code: "position_future",
      latest: expect.stringMatching(/sf-[a-z0-9]{6}$/),
    });
  });

  it.each([
    ["a message that is no JSON", "{", 4400],
    ["an array", "[]", 4400],
    ["a message above 256 KiB", "x".repeat(300_000), 1009],
  ])("closes on %s", async (_, message, code) => {
    using reader = await client();
    reader.send(message);
    expect(await reader.closed).toBe(code);
  });

  it("closes on the 65th subscription", async () => {
    using reader = await client();
    for (let n = 0; n < 65; n++) reader.send({ type: "subscribe", id: `s${n}`, after: "now" });
    expect(await reader.closed).toBe(4429);
  });

  it("is refused to a page from elsewhere", async () => {
    const socket = new WebSocket(`ws://${http}/api/v1/ws`, { headers: { origin: "http://evil.example" } });
    const status = await new Promise((resolve) =>
      socket.once("unexpected-response", (_request, response) => resolve(response.statusCode)).once("error", () => {}),
    );
    expect(status).toBe(403);
    socket.terminate();
  });
});

describe("GET /api/v1/events", () => {
  it("gives pages that follow each other", async () => {
    const first = await ask("/api/v1/events?limit=2");
    const second = await ask(`/api/v1/events?limit=2&after=${first.body.nextPage}`);
    const ordinals = [first, second].flatMap(({ body }) => (body.items as { ordinal: number }[]).map((e) => e.ordinal));
    expect(ordinals).toEqual([1, 2, 3, 4]);
  });

  it("gives the newest N, ascending", async () => {
    const { body } = await ask("/api/v1/events?last=2&kind=build.failed");
    expect((body.items as { ordinal: number }[]).map((e) => e.ordinal)).toEqual([4, 5]);
  });

  it("as NDJSON gives all of it and ends at the log's end", async () => {
    const all = await lines("/api/v1/events?kind=build.failed", "application/x-ndjson", () => false);
    expect(all.map((line) => (JSON.parse(line) as Message).type)).toEqual(["event", "event", "complete"]);
  });

  it.each([
    ["limit=0", "limit"],
    ["colour=red", "colour"],
    ["kind=x", "filter.kinds"],
    ["after=never", "after"],
  ])("refuses ?%s, naming the field", async (query, field) => {
    const { status, body } = await ask(`/api/v1/events?${query}`);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: "invalid_argument", field });
  });
});

describe("GET /api/v1/stream", () => {
  it("is server-sent events that resume with Last-Event-ID", async () => {
    const first = await lines("/api/v1/stream?after=start", "text/event-stream", (all) =>
      all.includes("event: caught_up"),
    );
    const ids = first.filter((line) => line.startsWith("id: ")).map((line) => line.slice(4));
    const resumed = await lines(
      "/api/v1/stream?after=start",
      "text/event-stream",
      (all) => all.some((l) => l.startsWith("id:")),
      {
        "last-event-id": ids[1] ?? "",
      },
    );
    expect(resumed.find((line) => line.startsWith("id: "))?.slice(4)).toBe(ids[2]);
  });

  it("sends its headers at once, also when nothing happens", async () => {
    const over = new AbortController();
    const response = await fetch(`http://${http}/api/v1/stream?after=now`, { signal: over.signal });
    expect(response.headers.get("tapedeck-position")).toMatch(new RegExp(`sf-${epoch}$`));
    over.abort();
  });

  it("ends with complete at `until`", async () => {
    const all = await lines(
      `/api/v1/stream?after=start&until=${eventPosition(epoch, 3)}`,
      "application/x-ndjson",
      () => false,
    );
    expect(all.map((line) => (JSON.parse(line) as Message).type)).toEqual(["event", "event", "event", "complete"]);
  });
});

describe("the pages for operators", () => {
  it("readyz says what is missing", async () => {
    const { status, body } = await ask("/readyz");
    expect(status).toBe(503);
    expect(body).toMatchObject({ ready: false, checks: { log: "ok" } });
  });

  it("query away is not_ready, with Retry-After", async () => {
    const { status, headers, body } = await ask("/api/v1/sources");
    expect(status).toBe(503);
    expect(headers.get("retry-after")).toBe("1");
    expect(body.error).toMatchObject({ code: "not_ready" });
  });

  it("metrics know how many streams are open", async () => {
    const open = async () =>
      Number(/^tapedeck_gateway_streams\S* (\d+)/m.exec(await (await fetch(`http://${http}/metrics`)).text())?.[1]);
    await until(async () => (await open()) === 0, { message: "the streams of other tests to be over" });
    using reader = await client();
    expect(await open()).toBe(1);
    reader[Symbol.dispose]();
    await until(async () => (await open()) === 0, { message: "the socket to be over" });
  });

  it("metrics count requests", async () => {
    const response = await fetch(`http://${http}/metrics`);
    expect(await response.text()).toMatch(/tapedeck_gateway_requests_total\{api="api"/);
  });

  it("metrics show the event loop's delay", async () => {
    const metrics = await (await fetch(`http://${http}/metrics`)).text();
    expect(metrics).toMatch(/nodejs_eventloop_lag_max_seconds\{service="gateway"\} \d/);
    expect(metrics).toMatch(/nodejs_eventloop_lag_p99_seconds\{service="gateway"\} \d/);
  });
});
