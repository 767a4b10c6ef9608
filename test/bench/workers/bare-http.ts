import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/**
 * Answers any request with ready objects, each rendered by JSON.stringify and written to the bare socket separately.
 */

let server: Server | undefined;
let objects: readonly object[] = [];
let total = 0;
let prefix = "";
let suffix = "";

/** Resolves with "host:port". */
export async function start(): Promise<string> {
  server = createServer((socket) => {
    socket.setNoDelay(true);
    socket.once("data", () => {
      write(socket).catch(() => socket.destroy());
    });
    socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function serve(texts: readonly string[], count: number, around: readonly [string, string]): void {
  objects = texts.map((text) => JSON.parse(text) as object);
  total = count;
  [prefix, suffix] = around;
}

async function write(socket: Socket): Promise<void> {
  socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n");
  for (let index = 0; index < total; index++) {
    const text = prefix + JSON.stringify(objects[index % objects.length]) + suffix;
    if (!socket.write(text)) await once(socket, "drain");
  }
  socket.end();
}
