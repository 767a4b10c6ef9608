import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { jetstream } from "@nats-io/jetstream";
import { eventsIn } from "@tapedeck/shared/log/batch/batch";
import { connect } from "nats";
import { type WebSocket, WebSocketServer } from "ws";

/** A consumer of raw record batches that sends each event on over bare ws: the minimum cost of a live delivery. */

let server: WebSocketServer;
/** Each event goes to one group of sockets, in turns. */
let groups: readonly (readonly WebSocket[])[] = [];
let sent = 0;
const text = "x".repeat(400);

/** Resolves with "host:port". The batches are those of raw-log.ts. */
export async function start(url: string): Promise<string> {
  server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false, backlog: 1_024 });
  await once(server, "listening");
  const nats = await connect({ servers: url });
  const consumer = await jetstream(nats).consumers.get("RAW");
  const messages = await consumer.consume({ max_messages: 1_000 });
  const read = async () => {
    for await (const { data } of messages) deliver(data);
  };
  read().catch(() => process.exit(1));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Divides all connected sockets into so many groups; from now on each event goes to one group. */
export function deliverToOneOf(count: number): void {
  const sockets = [...server.clients];
  groups = Array.from({ length: count }, (_, group) => sockets.filter((_socket, index) => index % count === group));
}

function deliver(pack: Uint8Array): void {
  for (const _ of eventsIn(pack)) {
    const event = `{"source":"default/raw/shop/skaffold","channel":"v1","frameOrdinal":${sent},"part":0,"text":"${text}"}`;
    const message = Buffer.from(`{"type":"event","id":"a","position":"-","event":${event}}`);
    for (const socket of groups[sent % groups.length] ?? []) socket.send(message, { binary: false });
    sent++;
  }
}
