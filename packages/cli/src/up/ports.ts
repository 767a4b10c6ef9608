import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { pause } from "@tapedeck/shared/streams/pause";
import { CommandError } from "../command-error.ts";

export type Listener = {
  /** What listens there, for people: "the gateway's HTTP". */
  readonly what: string;
  /** The setting that chooses the port. */
  readonly key: string;
  readonly host: string;
  readonly port: number;
};

/** Ports for the listeners that asked for any (0), all different. */
export async function choosePorts(listeners: readonly Listener[]): Promise<readonly Listener[]> {
  const held: Server[] = [];
  const chosen: Listener[] = [];
  for (const listener of listeners) {
    if (listener.port !== 0) {
      chosen.push(listener);
      continue;
    }
    const server = await hold(listener.host, 0);
    const address = server.address();
    held.push(server);
    chosen.push({ ...listener, port: typeof address === "object" && address !== null ? address.port : 0 });
  }
  await Promise.all(held.map(release));
  return chosen;
}

/**
 * @throws CommandError that names every port that is taken. `patienceMs`: how long they may be taken by what an earlier
 * start left behind and what is stopping now.
 */
export async function refuseTakenPorts(listeners: readonly Listener[], patienceMs: number): Promise<void> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const tried = await Promise.all(listeners.map(async (listener) => ((await isFree(listener)) ? [] : [listener])));
    const taken = tried.flat();
    if (taken.length === 0) return;
    if (performance.now() > end) throw new CommandError(taken.map(sentence).join("\n          "));
    await pause(100);
  }
}

function sentence({ what, key, host, port }: Listener): string {
  return `port ${port} on ${host} is taken, so ${what} can't listen there: stop what uses it, or choose another (${key}).`;
}

async function isFree({ host, port }: Listener): Promise<boolean> {
  try {
    await release(await hold(host, port));
    return true;
  } catch (error) {
    // What else may be wrong with an address is told by whoever listens there.
    return (error as NodeJS.ErrnoException).code !== "EADDRINUSE";
  }
}

async function hold(host: string, port: number): Promise<Server> {
  const server = createServer().listen(port, host);
  await once(server, "listening");
  return server;
}

async function release(server: Server): Promise<void> {
  server.close();
  await once(server, "close");
}
