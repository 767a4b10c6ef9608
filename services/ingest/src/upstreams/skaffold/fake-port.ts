import { once } from "node:events";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";

export type FakePort = {
  readonly port: number;
  readonly sockets: ReadonlySet<Socket>;
  /** Says goodbye (GOAWAY) and takes nobody new. */
  readonly leave: () => void;
  /** As the end of a process: connections are gone in mid-sentence. */
  readonly cut: () => void;
};

/** A port whose sockets are in our hands, so that they can be cut as a dying process cuts them. Rejects if it is taken. */
export async function openPort(server: Server, port: number): Promise<FakePort> {
  const sockets = new Set<Socket>();
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener: NetServer = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    injector.injectConnection(socket);
  });
  listener.listen(port, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    sockets,
    leave: () => {
      listener.close();
      injector.destroy();
    },
    cut: () => {
      listener.close();
      for (const socket of sockets) socket.destroy();
      server.forceShutdown();
    },
  };
}
