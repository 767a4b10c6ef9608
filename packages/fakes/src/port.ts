import { once } from "node:events";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";

/** Opens a port for a gRPC server. Rejects if it is taken. */
export async function openPort(server: Server, portNumber: number): Promise<FakePort> {
  const port = new FakePort(server);
  await port.listen(portNumber);
  return port;
}

/** A port whose sockets the fake owns, so that it can go away as a dying process does, and come back. */
export class FakePort {
  readonly #injector: ReturnType<Server["createConnectionInjector"]>;
  readonly #sockets = new Set<Socket>();
  #listener: NetServer | undefined;
  #port = 0;

  constructor(server: Server) {
    this.#injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  }

  get port(): number {
    return this.#port;
  }

  get sockets(): ReadonlySet<Socket> {
    return this.#sockets;
  }

  async listen(portNumber: number): Promise<void> {
    const listener = createServer({ noDelay: true }, (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {});
      this.#injector.injectConnection(socket);
    });
    listener.listen(portNumber, "127.0.0.1");
    await once(listener, "listening");
    this.#listener = listener;
    this.#port = (listener.address() as AddressInfo).port;
  }

  /** Opens the same port again. Rejects if another process has taken it. */
  async open(): Promise<void> {
    if (this.#listener === undefined) await this.listen(this.#port);
  }

  /** Ends like a process: the port refuses, and connections are reset. */
  async close(): Promise<void> {
    const listener = this.#listener;
    if (listener === undefined) return;
    const closed = once(listener, "close");
    this.stopListening();
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await closed;
  }

  /** Resets the connection of this peer ("127.0.0.1:40000"). */
  cut(peer: string): void {
    for (const socket of this.#sockets) {
      if (`${socket.remoteAddress}:${socket.remotePort}` === peer) socket.resetAndDestroy();
    }
  }

  /** Takes no new connections. */
  stopListening(): void {
    this.#listener?.close();
    this.#listener = undefined;
  }

  /** Sends GOAWAY on all connections. */
  sendGoaway(): void {
    this.#injector.destroy();
  }
}
