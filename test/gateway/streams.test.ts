import { get } from "node:http";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type SkaffoldClient, skaffoldClient } from "../skaffold/client.ts";
import { infoOf, skaffoldRefusal } from "../stack/error-info.ts";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

const events = "/proto.SkaffoldService/Events";
const eventLog = "/proto.SkaffoldService/EventLog";
const asIs = (bytes: Buffer) => bytes;

const cleanup = new AsyncDisposableStack();
const alice = scenario();
let on: SeededStack;
let client: SkaffoldClient;
let raw: Client;
/** Sequences of alice's events, in their order. */
const seqs: number[] = [];

const addEvents = async () => {
  const fresh = alice.events.slice(seqs.length);
  seqs.push(...(await on.seed(fresh)));
};
const framesOf = (from: number, channel = "v1") =>
  alice.events
    .slice(from)
    .filter((event) => event.channel === channel && event.kind !== "upstream.unreadable")
    .flatMap(({ original }) => (original?.bytes.length ? [original.bytes.toString("base64")] : []));
const text = (messages: readonly Buffer[]) => messages.map((bytes) => bytes.toString("base64"));

const first = alice.session("01A1");
first.started();
first.configured();
first.loopStarted();
first.build("web", "started");
first.build("web", "succeeded");
first.text("Building [web]...\n");
first.ended();
const secondBegins = alice.events.length;
const second = alice.session("01A2");
second.started();
second.configured();
second.loopStarted();

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  client = cleanup.use(skaffoldClient(on.stack.grpc));
  raw = cleanup.adopt(new Client(on.stack.grpc, credentials.createInsecure()), (it) => it.close());
  await addEvents();
});
afterAll(() => cleanup.disposeAsync());

describe("Events", () => {
  it("give the current session from its start, then live events, then the following sessions", async () => {
    const taking = client.take(events, 5);
    await until(async () => (await subscriptions()) === 1, { message: "the reader to follow" });
    second.build("api", "started");
    second.ended();
    const third = alice.session("01A3");
    third.started();
    third.configured();
    third.loopStarted();
    await addEvents();
    const got = await taking;
    expect(text(got)).toEqual(framesOf(secondBegins));
    expect(got.map((bytes) => LogEntry.decode(bytes).event?.event_type?.$case)).toEqual([
      "metaEvent",
      "devLoopEvent",
      "buildEvent",
      "metaEvent",
      "devLoopEvent",
    ]);
  });

  it("begin after a position or time, across sessions", async () => {
    const after = seqs[3] ?? 0; // the first build's start
    const expected = framesOf(4);
    expect(text(await client.take(events, expected.length, { "tapedeck-after": on.at(after) }))).toEqual(expected);
    const lines = await on.stack.httpLines(`/v1/events?after=${on.at(after)}`, expected.length);
    expect(lines[0]).toMatchObject({ result: { event: { buildEvent: { artifact: "web", status: "Complete" } } } });
    expect(text(await client.take(events, 1, { "tapedeck-after": "2020-01-01T00:00:00Z" }))).toEqual(
      framesOf(0).slice(0, 1),
    );
  });

  it("of one session give only its events, after a position in it", async () => {
    const metadata = { "tapedeck-session": "01A1", "tapedeck-after": on.at(seqs[3] ?? 0) };
    expect(text(await client.all(events, metadata))).toEqual(framesOf(4).slice(0, 1));
    expect(await client.all(events, { "tapedeck-session": "01A1", "tapedeck-after": on.at(seqs.at(-1) ?? 0) })).toEqual(
      [],
    );
  });

  it("of a running session end with it", async () => {
    const current = alice.session("01A4");
    current.started();
    current.configured();
    await addEvents();
    const all = client.all(events, { "tapedeck-session": "01A4" });
    await until(async () => (await subscriptions()) === 1, { message: "the reader to follow" });
    current.build("web", "started");
    current.ended();
    await addEvents();
    expect(await all).toHaveLength(2);
  });

  it("after `now` give only new events", async () => {
    const taking = client.take(events, 1, { "tapedeck-after": "now" });
    await until(async () => (await subscriptions()) === 1, { message: "the reader to follow" });
    const later = alice.session("01A5");
    later.started();
    later.configured();
    const expected = framesOf(alice.events.length - 1);
    await addEvents();
    expect(text(await taking)).toEqual(expected);
  });

  it.each([
    ["beyond the end", () => on.at(99_999), 11, "position_future"],
    ["of another log", () => "1100-zzzzzz", 9, "position_foreign"],
    ["that is none", () => "soon", 3, "invalid_argument"],
  ])("after a position %s are refused", async (_, after, code, reason) => {
    const answer = await new Promise<Parameters<typeof infoOf>[0]>((resolve) => {
      const call = raw.makeServerStreamRequest(
        events,
        asIs,
        asIs,
        Buffer.alloc(0),
        metadataOf({ "tapedeck-after": after() }),
      );
      call
        .on("data", () => {})
        .on("error", (error: { code: number; details: string; metadata: never }) => {
          resolve({ code: error.code, message: error.details, bytes: Buffer.alloc(0), metadata: error.metadata });
        });
    });
    expect(answer.code).toBe(code);
    expect(infoOf(answer)).toMatchObject({ reason });
    const overHttp = await on.stack.httpCall("GET", `/v1/events?after=${after()}`);
    expect(skaffoldRefusal(overHttp)).toMatchObject({ code, info: infoOf(answer) });
  });

  it("skip events without a message and events that were too large to keep", async () => {
    const session = alice.session("01A6");
    session.started();
    alice.add({
      kind: "upstream.unreadable",
      session: "01A6",
      channel: "v1",
      original: { type: "proto.LogEntry", bytes: Buffer.from([255]), size: 1n },
    });
    session.configured();
    const before = alice.events.length;
    alice.add({
      kind: "log.written",
      session: "01A6",
      channel: "v1",
      original: { type: "proto.LogEntry", size: 9_000_000n },
    });
    session.loopStarted();
    await addEvents();
    const expected = framesOf(before - 1);
    expect(text(await client.take(events, 2))).toEqual(expected);
    expect(await on.stack.httpLines("/v1/events", 2)).toMatchObject([
      { result: { event: { metaEvent: {} } } },
      { result: { event: { devLoopEvent: {} } } },
    ]);
  });
});

describe("clients of every generation", () => {
  const read = async (call: AsyncIterable<Buffer> & { cancel(): void }, count: number) => {
    const got: Buffer[] = [];
    for await (const message of call) if (got.push(message) === count) break;
    call.cancel();
    return text(got);
  };

  it.each([
    ["half-closes at once", events, (call: { end(): void }) => call.end()],
    ["never closes", events, () => {}],
    ["sends entries of its own", events, (call: { write(bytes: Buffer): unknown }) => call.write(Buffer.from([8, 1]))],
    ["half-closes at once", eventLog, (call: { end(): void }) => call.end()],
    ["never closes", eventLog, () => {}],
  ] as const)("a bidirectional client that %s reads %s", async (_, path, begin) => {
    const call = raw.makeBidiStreamRequest(path, asIs, asIs);
    begin(call.on("error", () => {}));
    expect(await read(call, 2)).toEqual(framesOf(alice.events.length - 4));
  });

  it("EventLog over HTTP equals Events", async () => {
    expect(await on.stack.httpLines("/v1/event_log", 2)).toEqual(await on.stack.httpLines("/v1/events", 2));
  });

  it("a form POST to a GET path counts as that GET", async () => {
    const form = { "content-type": "application/x-www-form-urlencoded" };
    expect(await on.stack.httpCall("POST", "/v1/state", form, "")).toMatchObject({ status: 200 });
    expect(await on.stack.httpCall("POST", "/v1/state", {}, "")).toMatchObject({ status: 501 });
  });
});

describe("Grpc-Timeout", () => {
  const exceeded = { code: 4, message: "context deadline exceeded", details: [] };

  it.each([["1n"], ["-1S"]])("of %s has passed: 504, unary and stream", async (timeout) => {
    for (const path of ["/v1/state", "/v1/events"]) {
      const { status, body } = await on.stack.httpCall("GET", path, { "grpc-timeout": timeout });
      expect([status, JSON.parse(body)]).toEqual([504, exceeded]);
    }
  });

  it.each([["20S"], ["1H"], ["0n"], ["99999999H"]])("of %s is enough time", async (timeout) => {
    expect(await on.stack.httpCall("GET", "/v1/state", { "grpc-timeout": timeout })).toMatchObject({ status: 200 });
  });

  it.each([["soon"], ["5"], ["S"]])("of %s is invalid: 400", async (timeout) => {
    const { status, body } = await on.stack.httpCall("GET", "/v1/state", { "grpc-timeout": timeout });
    expect([status, JSON.parse(body)]).toEqual([
      400,
      { code: 3, message: `invalid grpc-timeout: ${timeout}`, details: [] },
    ]);
  });

  it("ends a stream with an error, after the messages that came before it", async () => {
    const { status, body } = await on.stack.httpCall("GET", "/v1/events", { "grpc-timeout": "4S" });
    const lines = body
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect([status, lines.at(-1)]).toEqual([200, { error: exceeded }]);
    expect(lines).toHaveLength(3);
  });
});

describe("a client that leaves", () => {
  it("leaves no resources behind, on any transport", async () => {
    await until(async () => (await subscriptions()) === 0, { message: "former readers to be gone" });
    const leave: (() => void)[] = [];
    for (let turn = 0; turn < 10; turn++) {
      const [grpc, bidi] = [
        raw.makeServerStreamRequest(events, asIs, asIs, Buffer.alloc(0)),
        raw.makeBidiStreamRequest(events, asIs, asIs),
      ];
      for (const call of [grpc, bidi]) {
        call.on("error", () => {}); // it was cancelled
        leave.push(() => call.cancel());
      }
      for (const path of [
        "/v1/events",
        "/v2/events",
        "/api/v1/stream",
        "/api/v1/stream?kind=build.failed&after=start",
      ]) {
        // Uses a new connection: a pool may return one that a former reader is just closing.
        const request = get(`http://${on.stack.http}${path}`, { agent: false }).on("error", () => {});
        leave.push(() => request.destroy());
      }
      const socket = new WebSocket(`ws://${on.stack.http}/api/v1/ws`, "tapedeck.v1.json");
      socket
        .on("error", () => {})
        .on("open", () => {
          socket.send('{"type":"subscribe","id":"a"}');
          socket.send('{"type":"subscribe","id":"b","after":"start","state":true}');
        });
      leave.push(() => socket.terminate());
    }
    // WebSockets with two subscriptions each; state requires one named source, so one of them is refused.
    await until(async () => expect(await subscriptions()).toBe(70) ?? true, { message: "all to follow" });
    for (const go of leave) go();
    await until(async () => (await subscriptions()) === 0 && (await streams()) <= 1, { message: "all to be gone" });
  });
});

describe("headers come at once, before there is an event", () => {
  const dave = scenario(sourceName({ workspace: "acme", developer: "dave", project: "tools", upstream: "skaffold" }));
  beforeAll(async () => {
    dave.add({ kind: "source.added" });
    await on.seed(dave.events);
  });

  it("over gRPC", async () => {
    const call = raw.makeServerStreamRequest(
      events,
      asIs,
      asIs,
      Buffer.alloc(0),
      metadataOf({ "tapedeck-source": "dave/tools" }),
    );
    const metadata = await new Promise<{ get(name: string): unknown[] }>((resolve) => call.once("metadata", resolve));
    expect(metadata.get("tapedeck-position")).toEqual([on.at(0)]);
    call.on("error", () => {}).cancel();
  });

  it("over HTTP", async () => {
    const over = new AbortController();
    const response = await fetch(`http://${on.stack.http}/v2/applicationLogs?source=dave/tools`, {
      signal: over.signal,
    });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "application/json",
      "transfer-encoding": "chunked",
      "grpc-metadata-content-type": "application/grpc",
      "tapedeck-position": on.at(0),
    });
    over.abort();
  });
});

async function metric(name: string): Promise<number> {
  const { body } = await on.stack.httpCall("GET", "/metrics");
  return Number(new RegExp(`^${name}\\S* (\\d+)`, "m").exec(body)?.[1]);
}
const subscriptions = () => metric("tapedeck_gateway_subscriptions");
const streams = () => metric("tapedeck_gateway_streams");

function metadataOf(entries: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}
