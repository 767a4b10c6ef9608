import { once } from "node:events";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";

export type FakePort = {
  readonly port: number;
  /** As the end of the process: the port refuses, connections are reset. */
  readonly close: () => Promise<void>;
  /** The same port again. Rejects if somebody else has taken it. */
  readonly open: () => Promise<void>;
  /** Resets the connection of this peer ("127.0.0.1:40000"). */
  readonly cut: (peer: string) => void;
};

/** A port whose sockets are in our hands, so that it can go away and come back. Rejects if it is taken. */
export async function openPort(server: Server, wanted: number): Promise<FakePort> {
  const sockets = new Set<Socket>();
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  let listener: NetServer | undefined = await listen(wanted);
  const { port } = listener.address() as AddressInfo;

  async function listen(on: number): Promise<NetServer> {
    const opened = createServer({ noDelay: true }, (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => {});
      injector.injectConnection(socket);
    });
    opened.listen(on, "127.0.0.1");
    await once(opened, "listening");
    return opened;
  }

  return {
    port,
    open: async () => {
      listener ??= await listen(port);
    },
    close: async () => {
      if (listener === undefined) return;
      const closed = once(listener, "close");
      listener.close();
      listener = undefined;
      for (const socket of sockets) socket.resetAndDestroy();
      await closed;
    },
    cut: (peer) => {
      for (const socket of sockets) {
        if (`${socket.remoteAddress}:${socket.remotePort}` === peer) socket.resetAndDestroy();
      }
    },
  };
}
