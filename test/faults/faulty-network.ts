import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { delay } from "@tapedeck/shared/sync/delay";

/** The fate of all bytes that are sent from now on. */
export type Weather =
  | "fine"
  /** All packets are lost in both directions, without an error. */
  | "hole"
  /** The server's bytes are lost. */
  | "deaf"
  /** The client's bytes are lost. */
  | "mute"
  /** Bytes arrive in small pieces, each of them late. */
  | "slow"
  /** New connections are closed at once. */
  | "refusing";

/** A network between a client and a server on this machine. */
export type FaultyNetwork = AsyncDisposable & {
  readonly port: number;
  weather: Weather;
  /** Ends every connection cleanly. */
  cut(): void;
  /** Ends every connection with a reset, after a part of the data in flight. */
  reset(): void;
  /** Connections so far. */
  readonly connections: number;
};

type Line = { readonly client: Socket; readonly server: Socket; breaking: boolean };

const slow = { bytes: 700, ms: 2 };

export async function faultyNetwork(serverPort: number): Promise<FaultyNetwork> {
  const lines = new Set<Line>();
  let weather: Weather = "fine";
  let connections = 0;
  let changed = Promise.withResolvers<void>();

  async function passes(toServer: boolean): Promise<void> {
    const isHeld = () => weather === "hole" || weather === (toServer ? "mute" : "deaf");
    while (isHeld()) await changed.promise;
  }

  /** Reads only while it forwards: held data fills the system's buffers, and then the sender waits. */
  async function carry(line: Line, from: Socket, to: Socket): Promise<void> {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      await passes(to === line.server);
      if (line.breaking) {
        to.write(chunk.subarray(0, Math.ceil(chunk.length / 2)));
        to.resetAndDestroy();
        from.resetAndDestroy();
        return;
      }
      if (weather === "slow") {
        for (let start = 0; start < chunk.length; start += slow.bytes) {
          await delay(slow.ms);
          to.write(chunk.subarray(start, start + slow.bytes));
        }
      } else if (!to.write(chunk)) await Promise.race([once(to, "drain"), once(to, "close")]);
    }
    await passes(to === line.server);
    to.end();
  }

  const server = createServer((client) => {
    connections++;
    if (weather === "refusing") return client.destroy();
    const line: Line = { client, server: connect(serverPort, "127.0.0.1"), breaking: false };
    lines.add(line);
    for (const [from, to] of [
      [line.client, line.server],
      [line.server, line.client],
    ] as const) {
      from.on("error", () => {});
      from.once("close", () => {
        lines.delete(line);
        // The end is lost like all bytes: the other side does not notice it.
        void passes(to === line.server).then(() => to.destroy());
      });
      carry(line, from, to).catch(() => {});
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  function end(how: (socket: Socket) => void): void {
    for (const { client, server: upstream } of lines) {
      how(client);
      how(upstream);
    }
  }

  const network: FaultyNetwork = {
    port: (server.address() as AddressInfo).port,
    get weather() {
      return weather;
    },
    set weather(next) {
      weather = next;
      changed.resolve();
      changed = Promise.withResolvers();
    },
    cut: () => end((socket) => void socket.destroy()),
    reset: () => {
      for (const line of lines) line.breaking = true;
    },
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      network.weather = "fine";
      end((socket) => void socket.destroy());
      server.close();
      await once(server, "close");
    },
  };
  return network;
}
