import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A proxy between readers and a server that may come and go: has a stable address, and cuts connections at any point.
 */
export type CuttingProxy = AsyncDisposable & {
  /** "host:port" */
  readonly address: string;
  /** The next connection is cut after so many bytes from the server; undefined: never. */
  cutAfter: number | undefined;
  /** Cuts all connections now. */
  readonly cutAll: () => void;
};

/** `server`: the current "host:port". */
export async function cuttingProxy(server: () => string): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  };
  const proxy = { cutAfter: undefined as number | undefined };
  const listener = createServer((client) => {
    let left = proxy.cutAfter ?? Number.POSITIVE_INFINITY;
    proxy.cutAfter = undefined;
    const [host = "", port = ""] = server().split(":");
    const upstream = connect(Number(port), host);
    keep(client);
    keep(upstream);
    const cut = () => {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    };
    client.pipe(upstream);
    upstream.on("data", (data) => {
      const passed = data.subarray(0, left);
      left -= data.length;
      const isTaken = client.write(passed, () => left < 0 && cut());
      if (isTaken) return;
      upstream.pause();
      client.once("drain", () => upstream.resume());
    });
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return Object.defineProperties(proxy, {
    cutAll: {
      value: () => {
        for (const socket of sockets) socket.resetAndDestroy();
      },
    },
    address: { value: `127.0.0.1:${(listener.address() as AddressInfo).port}` },
    [Symbol.asyncDispose]: {
      value: async () => {
        for (const socket of sockets) socket.destroy();
        listener.close();
        await once(listener, "close");
      },
    },
  }) as CuttingProxy;
}
