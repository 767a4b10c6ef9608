import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";

export type FakePort = {
  readonly port: number;
  readonly sockets: ReadonlySet<Socket>;
  /** Pings that clients have sent. */
  readonly pings: () => number;
  /** Says goodbye (GOAWAY) and takes nobody new. */
  readonly leave: () => void;
  /** As the end of a process: connections are gone in mid-sentence. */
  readonly cut: () => void;
};

/** A port whose sockets are in our hands, so that they can be cut as a dying process cuts them. Rejects if it is taken. */
export async function openPort(server: Server, port: number): Promise<FakePort> {
  const sockets = new Set<Socket>();
  const sessions = new WeakSet<ServerHttp2Session>();
  let pings = 0;
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener: NetServer = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    injector.injectConnection(socket);
  });
  listener.listen(port, "127.0.0.1");
  await once(listener, "listening");
  const bound = (listener.address() as AddressInfo).port;

  // grpc-js keeps its sessions to itself and lets clients ping as they like; grpc-go does not.
  const watch = (message: unknown) => {
    const { session } = (message as { stream: ServerHttp2Stream }).stream;
    if (session?.socket.localPort !== bound || sessions.has(session as ServerHttp2Session)) return;
    sessions.add(session as ServerHttp2Session);
    let strikes = -1;
    session.on("ping", () => {
      pings++;
      if (++strikes > toleratedPings) refusePings(session as ServerHttp2Session);
    });
  };
  subscribe(streamCreated, watch);
  return {
    port: bound,
    sockets,
    pings: () => pings,
    leave: () => {
      listener.close();
      injector.destroy();
    },
    cut: () => {
      unsubscribe(streamCreated, watch);
      listener.close();
      for (const socket of sockets) socket.destroy();
      server.forceShutdown();
    },
  };
}

const streamCreated = "http2.server.stream.created";
/** After the first one, and closer together than five minutes. */
const toleratedPings = 2;

function refusePings(session: ServerHttp2Session): void {
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from("too_many_pings"));
  session.destroy();
}
