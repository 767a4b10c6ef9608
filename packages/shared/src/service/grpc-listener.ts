import { subscribe } from "node:diagnostics_channel";
import { lookup } from "node:dns/promises";
import type { ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer, isIP, type Server as NetServer, type Socket } from "node:net";
import type { ConnectionInjector, Server, ServerCredentials } from "@grpc/grpc-js";
import { startTimer, stopTimer } from "../sync/timers.ts";
import { listenError } from "./health.ts";
import type { SettingsReader } from "./settings.ts";

/** Limits on connections that have not authenticated yet. */
export type ConnectionLimits = {
  /** TCP connections at once; one more is closed at once. */
  readonly connections: number;
  /** How long a connection may take for its handshakes and the beginning of its first request, in ms. */
  readonly arrivalMs: number;
};

/** Reads the settings that bound the connections of a gRPC listener. */
export function connectionLimits(read: SettingsReader): ConnectionLimits {
  return {
    connections: read.integer("limits.grpc.connections", 10_000, {
      min: 1,
      description: "TCP connections of one gRPC listener.",
      past: "The connection is closed at once.",
    }),
    arrivalMs: read.duration("limits.arrival", 60_000, {
      min: 100,
      description: "Time that a request, and a gRPC connection's first one, may take to arrive.",
      past: "HTTP: status 408. gRPC: RESOURCE_EXHAUSTED. The connection is closed.",
    }),
  };
}

/** Where a gRPC server listens, and with which certificate. */
export type GrpcAddress = { readonly host: string; readonly port: number; readonly credentials: ServerCredentials };

/** A gRPC server that listens. Disposing it closes the port. */
export type GrpcListener = AsyncDisposable & { readonly port: number };

/**
 * Listens for a gRPC server, which by itself holds every connection for ever, however silent. The connections are ours
 * until the server gets them, so they can be counted and timed; one that has made a request may stay idle for any time
 * (the server's keepalive finds dead ones). Ends the server when it is disposed of.
 * @throws Error one sentence if the port is not available
 */
export async function listenGrpc(
  server: Server,
  { host, port, credentials }: GrpcAddress,
  { connections, arrivalMs }: ConnectionLimits,
): Promise<GrpcListener> {
  const injector = server.createConnectionInjector(credentials);
  const listeners: NetServer[] = [];
  const open = new Set<Socket>();
  const take = (socket: Socket) => {
    if (open.size >= connections) {
      socket.destroy();
      return;
    }
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    hand(socket, injector, arrivalMs);
  };
  const shutDown = () => {
    for (const listener of listeners) listener.close();
    // Streams here have no end of their own, so a graceful stop would wait for ever.
    server.forceShutdown();
    for (const socket of open) socket.destroySoon();
  };
  let bound = port;
  for (const address of await addressesOf(host, port)) {
    try {
      const listener = await listen(address, bound, take);
      listeners.push(listener);
      bound = (listener.address() as AddressInfo).port;
    } catch (cause) {
      // A name may mean an address that this machine does not have, such as ::1.
      if ((cause as NodeJS.ErrnoException).code === "EADDRNOTAVAIL" && listeners.length > 0) continue;
      shutDown();
      throw listenError(cause as NodeJS.ErrnoException, host, port);
    }
  }
  return { port: bound, [Symbol.asyncDispose]: async () => shutDown() };
}

/** By `endsOf`: called when a connection's first request begins. */
const awaited = new Map<string, () => void>();

// The gRPC server does not report connections, nor the calls that it refuses itself.
subscribe("http2.server.stream.start", (message) => {
  if (awaited.size === 0) return;
  const { stream } = message as { readonly stream: ServerHttp2Stream };
  const socket = stream.session?.socket;
  if (socket !== undefined) awaited.get(endsOf(socket))?.();
});

function hand(socket: Socket, injector: ConnectionInjector, arrivalMs: number): void {
  const ends = endsOf(socket);
  const late = startTimer(() => socket.destroy(), arrivalMs);
  const settle = () => {
    stopTimer(late);
    awaited.delete(ends);
  };
  awaited.set(ends, settle);
  socket.once("close", settle);
  socket.on("error", () => {}); // its session reports the error, if there is one
  injector.injectConnection(socket);
}

/** Identifies an open connection, also behind TLS. */
function endsOf({ localAddress, localPort, remoteAddress, remotePort }: Pick<Socket, keyof AddressPair>): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}

type AddressPair = Pick<Socket, "localAddress" | "localPort" | "remoteAddress" | "remotePort">;

async function addressesOf(host: string, port: number): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    return [...new Set((await lookup(host, { all: true })).map(({ address }) => address))];
  } catch (cause) {
    throw listenError(cause as NodeJS.ErrnoException, host, port);
  }
}

async function listen(host: string, port: number, take: (socket: Socket) => void): Promise<NetServer> {
  const listener = createServer(take);
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(port, host, resolve);
  });
  listener.on("error", () => {}); // accepting failed, for example without file descriptors: the next one may succeed
  return listener;
}
