import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

/** A server of the package ws without Tapedeck code. */

let server: WebSocketServer | undefined;

/** Resolves with "host:port". */
export async function start(): Promise<string> {
  server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false, backlog: 1_024 });
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The next client gets so many events: each is rendered by JSON.stringify from a ready object and sent separately. */
export async function stringifyToNext(texts: readonly string[], count: number): Promise<void> {
  const objects = texts.map((text) => JSON.parse(text) as object);
  (server as WebSocketServer).once("connection", (socket) => {
    stringify(socket, objects, count).catch(() => socket.terminate());
  });
}

/** Sends each event to all connected clients, in one buffer that all sockets share. */
export async function broadcast(texts: readonly string[], count: number): Promise<void> {
  const payloads = texts.map((text) => Buffer.from(text));
  for (let index = 0; index < count; index++) {
    const payload = payloads[index % payloads.length] as Buffer;
    for (const socket of (server as WebSocketServer).clients) socket.send(payload, { binary: false });
    // One event loop turn per event, so that sockets can write and no client falls far behind.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export const connected = (): number => server?.clients.size ?? 0;

/** Resident memory in MiB, after garbage collection. */
export function memory(): number {
  globalThis.gc?.();
  return process.memoryUsage().rss / 1024 / 1024;
}

const maxUnread = 1024 * 1024;

async function stringify(socket: WebSocket, objects: readonly object[], count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const text = JSON.stringify(objects[index % objects.length]);
    if (socket.bufferedAmount < maxUnread) socket.send(text);
    else await new Promise((resolve) => socket.send(text, resolve));
  }
}
