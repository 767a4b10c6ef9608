import { Client, type ClientReadableStream, credentials, Metadata } from "@grpc/grpc-js";
import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import type { LogReader } from "@tapedeck/shared/log/log";
import { logStart } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { delay } from "@tapedeck/shared/sync/delay";
import { until } from "@tapedeck/shared/testing/until";
import { EventSource } from "eventsource";
import { expect } from "vitest";
import { WebSocket } from "ws";
import { bearing } from "../stack/token-stack.ts";

export type ReceivedEvent = {
  readonly position: string;
  readonly event: { readonly id: string; readonly kind: string };
  /** In ms since 1970. */
  readonly receivedAt?: number;
};

/** A reader that reconnects after every cut, from its last position. */
export type Subscriber<T> = AsyncDisposable & {
  /** In order of arrival, over all its connections. */
  readonly seen: readonly T[];
  /** Connections it has had so far. */
  readonly connections: () => number;
};

/** Checks that it received all matching events of the log, once each, in order. */
export async function sawTheLog(log: LogReader, { seen }: Subscriber<ReceivedEvent>, filter: Filter): Promise<void> {
  const { lastOffset } = await log.bounds();
  const expected: { position: string; id: string }[] = [];
  const range = { afterOffset: logStart, subjects: [] };
  for await (const { event, offset } of log.history(range, lastOffset, AbortSignal.timeout(60_000))) {
    if (matches(filter, event)) expected.push({ position: formatPosition({ epoch: log.epoch, offset }), id: event.id });
  }
  const last = expected.at(-1)?.position;
  await until(() => seen.at(-1)?.position === last, { message: `the subscriber to see ${last}` });
  expect(seen.map(({ position, event: { id } }) => ({ position, id }))).toEqual(expected);
}

/** Retries as a client would: at once, but not in a tight loop while nothing listens. */
const againMs = 25;

/** `at`: "host:port", or an origin such as "https://host:port". */
const originOf = (at: string) => (at.includes("://") ? at : `http://${at}`);

/** Opens one connection after the other until it is disposed of; `connect` resolves when its connection has ended. */
function keepUp<T>(seen: T[], connect: (signal: AbortSignal) => Promise<void>): Subscriber<T> {
  const over = new AbortController();
  let connections = 0;
  const run = async () => {
    while (!over.signal.aborted) {
      connections++;
      await connect(over.signal);
      await delay(againMs, over.signal);
    }
  };
  const running = run();
  return {
    seen,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      over.abort();
      await running;
    },
  };
}

/** Subscribes over the WebSocket, from the log's start. */
export function socketSubscriber(http: string, filter: Readonly<Record<string, readonly string[]>>, token?: string) {
  const seen: ReceivedEvent[] = [];
  let after = "start";
  return keepUp(seen, async (signal) => {
    const headers = bearing(token);
    const socket = new WebSocket(`${originOf(http)}/api/v1/ws`, "tapedeck.v1.json", { headers });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => {});
    socket.on("open", () => socket.send(JSON.stringify({ type: "subscribe", id: "a", after, filter })));
    socket.on("message", (data) => {
      const message = JSON.parse(String(data)) as { type: string; position: string } & ReceivedEvent;
      if (message.type === "event") {
        seen.push({ position: message.position, event: message.event, receivedAt: Date.now() });
      }
      if (message.type === "event" || message.type === "bookmark") after = message.position;
      // The subscription is over, though the socket may stay open.
      if (message.type === "error") socket.close();
    });
    const leave = () => socket.terminate();
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    await closed;
    signal.removeEventListener("abort", leave);
  });
}

/** Subscribes over server-sent events: EventSource reconnects by itself, and gives up only on an error response. */
export function sseSubscriber(http: string, parameters: readonly (readonly [string, string])[], token?: string) {
  const seen: ReceivedEvent[] = [];
  let after = "start";
  return keepUp(seen, async (signal) => {
    const query = new URLSearchParams([
      ...parameters.map(([name, value]): [string, string] => [name, value]),
      ["after", after],
    ]);
    const source = new EventSource(`${originOf(http)}/api/v1/stream?${query}`, {
      fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...bearing(token) } }),
    });
    await new Promise<void>((resolve) => {
      source.onmessage = ({ data, lastEventId }) => {
        const { event } = JSON.parse(data as string) as ReceivedEvent;
        seen.push({ position: lastEventId, event });
        after = lastEventId;
      };
      source.onerror = () => {
        if (source.readyState === EventSource.CLOSED) resolve();
      };
      signal.addEventListener("abort", () => resolve());
      if (signal.aborted) resolve();
    });
    source.close();
  });
}

/**
 * A client of Skaffold's own gRPC Events. It gets the position of its stream's beginning, not of each message, so it
 * reconnects at the beginning and skips what it has: the repeated messages must be identical.
 */
export function eventsSubscriber(grpc: string, method: string, source: string, after: string, token?: string) {
  const seen: string[] = [];
  const differing: string[] = [];
  const asIs = (bytes: Buffer) => bytes;
  const subscriber = keepUp(seen, async (signal) => {
    const client = new Client(grpc, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
    const metadata = new Metadata();
    metadata.set("tapedeck-source", source);
    metadata.set("tapedeck-after", after);
    for (const [name, value] of Object.entries(bearing(token))) metadata.set(name, value);
    const call: ClientReadableStream<Buffer> = client.makeServerStreamRequest(
      method,
      asIs,
      asIs,
      Buffer.alloc(0),
      metadata,
    );
    let count = 0;
    const leave = () => call.cancel();
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    await new Promise<void>((resolve) => {
      call.on("data", (bytes: Buffer) => {
        const text = bytes.toString("base64");
        const before = seen[count++];
        if (before === undefined) seen.push(text);
        else if (before !== text) differing.push(`message ${count}: ${before} came again as ${text}`);
      });
      call.on("error", () => {});
      call.on("status", () => resolve());
    });
    signal.removeEventListener("abort", leave);
    client.close();
  });
  return { ...subscriber, differing };
}
