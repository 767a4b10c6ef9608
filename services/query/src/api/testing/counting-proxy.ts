import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type CountingProxy = AsyncDisposable & {
  /** The server's address, by way of the proxy. */
  readonly url: string;
  /** How often the client has spoken after the server, or first: what it sends without an answer between counts once. */
  turns: number;
  /** Bytes that the server has sent. */
  readonly receivedBytes: number;
};

/** Stands between a client and a server and counts round trips. */
export async function countingProxy(serverUrl: string): Promise<CountingProxy> {
  const { hostname, port } = new URL(serverUrl);
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
  };
  let turns = 0;
  let receivedBytes = 0;
  let isAnswered = true;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    keep(client);
    keep(upstream);
    client.on("data", (data) => {
      if (isAnswered) turns += 1;
      isAnswered = false;
      upstream.write(data);
    });
    upstream.on("data", (data) => {
      isAnswered = true;
      receivedBytes += data.length;
      client.write(data);
    });
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(serverUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    get turns() {
      return turns;
    },
    get receivedBytes() {
      return receivedBytes;
    },
    set turns(count) {
      turns = count;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
