import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { silentConnection } from "@tapedeck/shared/testing/silent-connection";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventsPath, gatewayHarness, type Limited, openCall, refusalOf } from "./testing/limited-gateway.ts";

const stack = new AsyncDisposableStack();
let harness: Awaited<ReturnType<typeof gatewayHarness>>;
let on: Limited;
/** Waits only a second for what is to arrive. */
let impatient: Limited;
beforeAll(async () => {
  harness = stack.use(await gatewayHarness());
  on = stack.use(
    await harness.gateway({
      LIMITS_GRPC_MESSAGE_BYTES: "2048",
      LIMITS_GRPC_STREAMS: "2",
      LIMITS_HTTP_BODY_BYTES: "2048",
      LIMITS_HTTP_HEADER_BYTES: "2048",
      LIMITS_HTTP_CONNECTIONS: "3",
      LIMITS_WEB_SOCKET_MESSAGE_BYTES: "1024",
      LIMITS_WEB_SOCKET_SUBSCRIPTIONS: "2",
    }),
  );
  impatient = stack.use(await harness.gateway({ LIMITS_ARRIVAL: "1s" }));
});
afterAll(() => stack.disposeAsync());

/** A connection below HTTP; what comes is kept as text. */
async function rawConnection(to = on): Promise<{
  readonly tcp: Socket;
  readonly got: () => string;
  readonly over: () => boolean;
}> {
  const [host = "", port = ""] = to.http.split(":");
  const tcp = connect(Number(port), host);
  let text = "";
  let over = false;
  tcp.on("data", (chunk) => {
    text += chunk;
  });
  tcp.on("error", () => {});
  tcp.on("close", () => {
    over = true;
  });
  await once(tcp, "connect");
  return { tcp, got: () => text, over: () => over };
}

/** The error in the answer's body, which is one line of JSON. */
const errorIn = (answer: string) => (JSON.parse(answer.split("\r\n").at(-1) ?? "") as { error: object }).error;

const reflectionPath = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
/** A ServerReflectionRequest with list_services: "". */
const listServices = Uint8Array.of(0x3a, 0);

describe("gRPC", () => {
  it("a message that is too large: RESOURCE_EXHAUSTED, in gRPC's own words", async () => {
    const status = await on.call(eventsPath, { request: Buffer.alloc(3_000) }).over;
    expect(refusalOf(status)).toEqual({ code: 8 });
    expect(status.details).toBe("Received message larger than max (3000 vs 2048)");
  });

  it("a call too many on one connection waits at the client, and goes on when another has ended", async () => {
    const client = on.other();
    // One that the server ends when its client has said all: one that the client cancels is still counted by Node when
    // the next comes.
    const first = openCall(client, reflectionPath, { request: listServices, isWhole: false });
    expect(await first.opened).toBeUndefined();
    const second = openCall(client, eventsPath);
    expect(await second.opened).toBeUndefined();
    const third = openCall(client, eventsPath);
    // A call on another connection is answered, so the server is not merely slow.
    const elsewhere = openCall(on.other(), eventsPath);
    expect(await elsewhere.opened).toBeUndefined();
    expect(third.isOpen).toBe(false);
    first.finish();
    expect(await third.opened).toBeUndefined();
    for (const call of [second, third, elsewhere]) call.end();
  });

  it("a connection that asks for nothing is closed", async () => {
    const [host = "", port = ""] = impatient.grpc.split(":");
    const silent = connect(Number(port), host).resume();
    const session = connectHttp2(`http://${impatient.grpc}`);
    await Promise.all([once(silent, "close"), once(session, "close")]);
  });

  it("a connection too many is closed at once", async () => {
    await using narrow = await harness.gateway({ LIMITS_GRPC_CONNECTIONS: "1", LIMITS_ARRIVAL: "3s" });
    const since = performance.now();
    using first = await silentConnection(narrow.grpc);
    using second = await silentConnection(narrow.grpc);
    await until(second.isOver, { message: "the second to be closed" });
    expect(first.isOver() && performance.now() - since < 3_000).toBe(false);
    await until(first.isOver, { message: "the first to be closed" });
  });

  it("a request that does not arrive is given up, and one that has arrived is not", async () => {
    const arrived = impatient.call(eventsPath);
    expect(await arrived.opened).toBeUndefined();
    const session = connectHttp2(`http://${impatient.grpc}`);
    const stream = session.request({
      ":method": "POST",
      ":path": eventsPath,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const [headers] = (await once(stream, "response")) as [Record<string, string>];
    session.destroy();
    expect(headers["grpc-status"]).toBe("8");
    expect(decodeURI(headers["grpc-message"] ?? "")).toBe("the request did not arrive within 1000 ms");
    arrived.end();
    expect((await arrived.over).code).toBe(1);
  });
});

describe("WebSocket", () => {
  it("a message that is too large: 1009", async () => {
    const socket = await on.socket();
    socket.send({ type: "subscribe", id: "a", after: "x".repeat(1_100) });
    expect((await socket.closed).code).toBe(1009);
  });

  it("a subscription too many: 4429", async () => {
    const socket = await on.socket();
    for (const id of ["a", "b", "c"]) socket.send({ type: "subscribe", id });
    expect(await socket.closed).toEqual({ code: 4429, reason: "more than 2 subscriptions" });
  });
});

describe("HTTP", () => {
  it.each([
    ["/v1/execute", { code: 8, message: expect.stringContaining("larger than max (3000 vs. 2048)") }],
    ["/v1/events/handle", { code: 8 }],
  ])("a body that is too large: 429 %s", async (path, body) => {
    const response = await fetch(`http://${on.http}${path}`, { method: "POST", body: "x".repeat(3_000) });
    expect([response.status, await response.json()]).toEqual([429, expect.objectContaining(body)]);
  });

  it("headers that are too large: 431", async () => {
    const { tcp, got, over } = await rawConnection();
    tcp.write(`GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Much: ${"x".repeat(3_000)}\r\n\r\n`);
    await until(over, { message: "the connection to be closed" });
    expect(got()).toMatch(/^HTTP\/1.1 431 /);
    expect(errorIn(got())).toMatchObject({ code: "limit_exceeded" });
  });

  it.each([
    ["headers", "GET /healthz HTTP/1.1\r\nHost: 127.0"],
    ["body", "POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"],
  ])("%s that do not arrive: 408", async (_, beginning) => {
    const { tcp, got, over } = await rawConnection(impatient);
    tcp.write(beginning);
    await until(over, { message: "the connection to be closed" });
    expect(got()).toMatch(/^HTTP\/1.1 408 /);
    expect(errorIn(got())).toMatchObject({ code: "limit_exceeded" });
  });

  it("bytes that are no HTTP: 400", async () => {
    const { tcp, got, over } = await rawConnection();
    tcp.write("hello there\r\n\r\n");
    await until(over, { message: "the connection to be closed" });
    expect(errorIn(got())).toMatchObject({ code: "invalid_argument" });
  });

  it("a connection too many is closed at once, and another one has its place when one ends", async () => {
    const open: Awaited<ReturnType<typeof rawConnection>>[] = [];
    // Connections of the tests before may still be there for a moment.
    await until(
      async () => {
        open.push(await rawConnection());
        return open.some(({ over }) => over());
      },
      { message: "one to be closed" },
    );
    expect(open.length).toBeGreaterThan(3);
    const isServed = async () => {
      const { tcp, got } = await rawConnection();
      tcp.end("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
      await once(tcp, "close");
      return got().startsWith("HTTP/1.1 200");
    };
    expect(await isServed()).toBe(false);
    for (const { tcp } of open) tcp.destroy();
    await until(isServed, { message: "a place" });
  });
});
