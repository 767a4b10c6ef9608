import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { startTimer } from "../sync/timers.ts";

export type LossyProxy = AsyncDisposable & {
  readonly port: number;
  /** While true, what the server says is thrown away; what the client says arrives. */
  deaf: boolean;
  /** While true, every connection is cut. */
  away: boolean;
  /** The delay of what the server sends. */
  lateMs: number;
  /** Cuts every connection. */
  cut(): void;
};

/** Stands between a client and a server on this machine and loses answers on demand. */
export async function lossyProxy(serverPort: number): Promise<LossyProxy> {
  const sockets = new Set<Socket>();
  let deaf = false;
  let away = false;
  let lateMs = 0;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  };
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    if (away) return client.destroy();
    const upstream = connect(serverPort, "127.0.0.1");
    keep(client);
    keep(upstream);
    client.on("data", (data) => upstream.write(data));
    upstream.on("data", (data) => {
      if (deaf) return;
      if (lateMs === 0) client.write(data);
      else startTimer(() => client.write(data), lateMs);
    });
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get deaf() {
      return deaf;
    },
    set deaf(value) {
      deaf = value;
    },
    get away() {
      return away;
    },
    set away(value) {
      away = value;
      if (away) cut();
    },
    get lateMs() {
      return lateMs;
    },
    set lateMs(value) {
      lateMs = value;
    },
    cut,
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
