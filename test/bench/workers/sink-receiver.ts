import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { until } from "@tapedeck/shared/testing/until";

/** A target of webhooks that counts events and parses none. */

const mark = Buffer.from('"specversion"');
let server: Server | undefined;
let events = 0;

/** Resolves with "host:port". */
export async function start(): Promise<string> {
  server = createServer((incoming, response) => {
    incoming.toArray().then(
      (chunks: Buffer[]) => {
        events += marksIn(Buffer.concat(chunks));
        response.writeHead(204).end();
      },
      () => response.destroy(),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Resolves with how many have come since the last call, once these are so many. */
export async function received(count: number): Promise<number> {
  await until(() => events >= count, { message: `${count} events, of which ${events} came` });
  const came = events;
  events = 0;
  return came;
}

function marksIn(body: Buffer): number {
  let count = 0;
  for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + mark.length)) count++;
  return count;
}
