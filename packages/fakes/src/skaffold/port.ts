import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Server } from "@grpc/grpc-js";
import { FakePort } from "../port.ts";

const streamCreated = "http2.server.stream.created";
/** The first ping and this many more are tolerated when they come closer together than five minutes. */
const toleratedPings = 2;

/** Opens the port of a Skaffold process. Rejects if it is taken. */
export async function openSkaffoldPort(server: Server, portNumber: number): Promise<SkaffoldPort> {
  const port = new FakePort(server);
  await port.listen(portNumber);
  return new SkaffoldPort(server, port);
}

/** A port that refuses frequent pings, as grpc-go does. grpc-js hides its sessions and tolerates any pings. */
export class SkaffoldPort {
  readonly #server: Server;
  readonly #port: FakePort;
  readonly #sessions = new WeakSet<ServerHttp2Session>();
  #pings = 0;

  constructor(server: Server, port: FakePort) {
    this.#server = server;
    this.#port = port;
    subscribe(streamCreated, this.#watchPings);
  }

  get port(): number {
    return this.#port.port;
  }

  get sockets(): ReadonlySet<Socket> {
    return this.#port.sockets;
  }

  /** Pings that clients have sent. */
  get pings(): number {
    return this.#pings;
  }

  /** Says goodbye (GOAWAY) and takes no new connections. */
  leave(): void {
    this.#port.stopListening();
    this.#port.sendGoaway();
  }

  /** Ends like a process: connections are gone in the middle of a message. */
  readonly cut = (): void => {
    unsubscribe(streamCreated, this.#watchPings);
    this.#port.stopListening();
    for (const socket of this.#port.sockets) socket.destroy();
    this.#server.forceShutdown();
  };

  readonly #watchPings = (message: unknown): void => {
    const session = (message as { stream: ServerHttp2Stream }).stream.session as ServerHttp2Session | undefined;
    if (session?.socket.localPort !== this.#port.port || this.#sessions.has(session)) return;
    this.#sessions.add(session);
    let strikes = -1;
    session.on("ping", () => {
      this.#pings++;
      if (++strikes > toleratedPings) refusePings(session);
    });
  };
}

function refusePings(session: ServerHttp2Session): void {
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from("too_many_pings"));
  session.destroy();
}
