import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { fromUnknown, TapedeckError } from "@tapedeck/shared/errors/errors";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { SubscriptionMessage } from "../../apis/tapedeck/messages.ts";
import type { SubscribeRequest } from "../../apis/tapedeck/tapedeck-api.ts";
import type { CallContext } from "../../call-context.ts";
import { liveness } from "../liveness.ts";
import { type SocketUsage, socketLimits } from "./socket-options.ts";
import { serveSocket } from "./websocket.ts";

/** A machine that is busy elsewhere for a second or two is not taken for a peer that is gone. */
const impatient = { ...socketLimits, quietMs: 300, silentMs: 3_000 };

let stack: AsyncDisposableStack;
/** The counts of the present test: bytes by subscription, and the number of open subscriptions. */
let now: { readonly bytes: Map<string, number>; open: number };
let limits: typeof socketLimits;
let usage: SocketUsage;
let server: WebSocketServer;
let port: number;
/** How often the server stopped reading a client. */
let pauses: number;

/** `after` says how large the messages of a subscription are and, behind a colon, how many there are; then it idles. */
async function* reported(
  { after = "" }: SubscribeRequest,
  { signal }: CallContext,
): AsyncGenerator<SubscriptionMessage> {
  const [size = "", many = "Infinity"] = after.split(":");
  const json = `{"type":"event","position":"p-1","event":"${"x".repeat(Number(size))}"}`;
  const mine = now;
  mine.open++;
  try {
    for (let n = 0; n < Number(many) && !signal.aborted; n++) {
      yield { type: "event", position: "p-1", json, protoUpTo: () => new Uint8Array() };
      mine.bytes.set(after, (mine.bytes.get(after) ?? 0) + json.length);
    }
    if (!signal.aborted) await once(signal, "abort");
  } finally {
    mine.open--;
  }
}

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  now = { bytes: new Map(), open: 0 };
  limits = socketLimits;
  usage = { open: () => {}, message: async () => {} };
  pauses = 0;
  server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  stack.defer(async () => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  port = (server.address() as AddressInfo).port;
  server.on("connection", (socket, request) => {
    const failed = (error: unknown) => fromUnknown(error);
    const pause = socket.pause.bind(socket);
    socket.pause = () => {
      pauses++;
      pause();
    };
    serveSocket(socket, {
      api: {
        subscribe: async (request, context) => {
          if (request.after === "refuse") throw new TapedeckError("unknown_source", "no such source");
          return { position: "p-0", messages: reported(request, context) };
        },
      },
      caller: { workspace: "default", who: "a test", kind: "token" },
      watch: { seen: () => {}, sent: () => {}, failed },
      tcp: request.socket,
      limits,
      usage,
    });
  });
});
afterEach(() => stack.disposeAsync());

async function client() {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`);
  stack.defer(() => socket.terminate());
  const got: { type: string; id?: string; error?: { code: string } }[] = [];
  socket.on("message", (data) => got.push(JSON.parse(String(data))));
  const closed = new Promise<number>((resolve) => socket.once("close", resolve));
  await once(socket, "open");
  const send = (message: object) => socket.send(JSON.stringify(message));
  return {
    socket,
    got,
    closed,
    send,
    subscribe: (id: string, after: string) => send({ type: "subscribe", id, after }),
  };
}

/** A client below WebSocket: it answers no pings, and reads only when asked to. */
async function rawClient(): Promise<Socket> {
  const tcp = connect(port, "127.0.0.1");
  stack.defer(() => void tcp.destroy());
  tcp.on("error", () => {}); // it may be cut
  tcp.write(
    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  await once(tcp, "data");
  tcp.pause();
  return tcp;
}

function masked(message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  const head = text.length < 126 ? [0x81, 0x80 | text.length] : [0x81, 0x80 | 126, text.length >> 8, text.length & 255];
  return Buffer.concat([Buffer.from(head), Buffer.alloc(4), text]); // a mask of zeroes
}

/** The number when it has stayed the same, and above 0, for several checks in a row. */
async function atRest(observation: () => number): Promise<number> {
  let last = 0;
  let same = 0;
  const isSame = () => {
    const number = observation();
    same = number > 0 && number === last ? same + 1 : 0;
    last = number;
    return same >= 10;
  };
  await until(isSame, { message: "it to come to rest" });
  return last;
}

it("subscriptions of one socket take turns, though the large messages of one fit in less often", async () => {
  const { got, subscribe } = await client();
  subscribe("large", "900000");
  subscribe("small", "1000");
  const of = (id: string) => got.filter((message) => message.id === id).length;
  await until(() => of("large") >= 20, { message: "the large ones" });
  expect(of("small") / of("large")).toBeLessThan(4);
});

it.each([
  ["small ones", ["1000"], 1 << 20],
  ["of several subscriptions", ["1000", "30000", "500000", "2000:9999999"], 1 << 20],
  ["one larger than what may wait", ["3000000"], 3_000_100],
])("a client that does not read holds no more than it may: %s", async (_, all, max) => {
  limits = { ...socketLimits, quietMs: 60_000, silentMs: 120_000 };
  const { socket, subscribe } = await client();
  socket.pause();
  for (const [at, after] of all.entries()) subscribe(String(at), after);
  const sum = () => [...now.bytes.values()].reduce((a, b) => a + b, 0);
  const given = await atRest(sum);
  const kernel = 7 << 20; // send and receive buffers of a loopback connection grow to so much
  expect(given).toBeLessThan(max + kernel + all.length * 500_000);
  socket.resume();
  await until(() => sum() > given + max, { message: "it to read on" });
});

it("a client that talks without reading the answers is not read any more, and is let go in the end", async () => {
  limits = { ...impatient, unreadBytes: 10_000 };
  const tcp = await rawClient();
  tcp.write(Buffer.concat(Array(500_000).fill(masked({ type: "what is this?" }))));
  expect(await atRest(() => tcp.writableLength)).toBeGreaterThan(5_000_000);
  await until(() => server.clients.size === 0, { message: "it to be let go" });
});

it("a peer that answers no pings is closed with that reason", async () => {
  limits = impatient;
  const tcp = await rawClient();
  tcp.write(masked({ type: "subscribe", id: "a", after: "10:1" }));
  let got = Buffer.alloc(0);
  tcp.on("data", (chunk) => {
    got = Buffer.concat([got, chunk]);
  });
  tcp.resume();
  await once(tcp, "close");
  expect(got.includes(Buffer.from([0x89]))).toBe(true); // a ping
  expect(got.includes(Buffer.from([4408 >> 8, 4408 & 255]))).toBe(true);
  await until(() => now.open === 0, { message: "its subscription to be over" });
});

it("a slow reader is alive, and lives for as long as it reads", async () => {
  limits = impatient;
  const tcp = await rawClient();
  const closed = new Promise((resolve) => tcp.once("close", resolve));
  tcp.write(masked({ type: "subscribe", id: "a", after: "100000" }));
  let got = 0;
  const readSome = () => {
    for (let chunk: Buffer | null = tcp.read(); chunk !== null; chunk = tcp.read()) got += chunk.byteLength;
  };
  const longAfter = performance.now() + 2 * impatient.silentMs;
  const reading = setInterval(readSome, 4);
  stack.defer(() => clearInterval(reading));
  await until(() => performance.now() > longAfter, { message: "several times what counts as silence" });
  // More than fits on the way: it was given more all along.
  expect(got).toBeGreaterThan(12_000_000);
  expect([now.open, tcp.destroyed]).toEqual([1, false]);
  // And now it reads no more.
  clearInterval(reading);
  await until(() => now.open === 0, { message: "it to be given up" });
  tcp.resume();
  await closed;
});

it("dead peers are found within 35 s, a second for the farewell included", () => {
  expect(liveness.silentMs + 1_000).toBeLessThanOrEqual(35_000);
});

it("a subscription that could not start is reported with its id, and the id is free again", async () => {
  const { got, subscribe } = await client();
  subscribe("a", "refuse");
  await until(() => got.length === 1, { message: "the refusal" });
  expect(got[0]).toMatchObject({ type: "error", id: "a", error: { code: "unknown_source" } });
  subscribe("a", "10:1");
  await until(() => got.length === 2, { message: "the event" });
});

it("an id in use is refused without it: the subscription that has it goes on", async () => {
  const { got, subscribe } = await client();
  subscribe("a", "10:1");
  subscribe("a", "10:1");
  await until(() => got.length === 2, { message: "both answers" });
  expect(got.filter(({ type }) => type === "error")).toEqual([
    { type: "error", error: expect.objectContaining({ code: "invalid_argument", field: "id" }) },
  ]);
  expect(now.open).toBe(1);
});

it("a client over its message rate gets an error, and is not read for a moment", async () => {
  let received = 0;
  usage = {
    open: () => {},
    async message() {
      received++;
      if (received === 2 || received === 3) throw new TapedeckError("limit_exceeded", "wait");
    },
  };
  const { got, subscribe, send } = await client();
  subscribe("a", "10:1");
  await until(() => now.open === 1, { message: "the subscription" });
  subscribe("a", "10:1");
  subscribe("b", "10:1");
  const refusals = () => got.filter(({ type }) => type === "error");
  await until(() => refusals().length === 2, { message: "the refusals" });
  // Without the id of the one that goes on.
  const error = { code: "limit_exceeded", message: "wait" };
  expect(refusals()).toEqual([
    { type: "error", error },
    { type: "error", id: "b", error },
  ]);
  expect(pauses).toBeGreaterThan(0);
  send({ type: "ping" });
  await until(() => got.some(({ type }) => type === "pong"), { message: "the answer, a second later" });
  expect(now.open).toBe(1);
});

it("a socket too many is closed with that reason", async () => {
  usage = {
    open: () => {
      throw new TapedeckError("limit_exceeded", "too many");
    },
    message: async () => {},
  };
  const { got, closed, subscribe } = await client();
  subscribe("a", "10:1");
  expect(await closed).toBe(4429);
  expect(got).toEqual([{ type: "error", error: { code: "limit_exceeded", message: "too many" } }]);
  expect(now.open).toBe(0);
});

it("after complete nothing more comes, though much was waiting", async () => {
  const { got, subscribe, send } = await client();
  subscribe("a", "50000");
  await until(() => got.length > 20, { message: "some" });
  send({ type: "unsubscribe", id: "a" });
  await until(() => got.at(-1)?.type === "complete", { message: "complete" });
  send({ type: "ping" });
  await until(() => got.some(({ type }) => type === "pong"), { message: "pong" });
  expect(got.slice(-2).map(({ type }) => type)).toEqual(["complete", "pong"]);
  expect(now.open).toBe(0);
});
