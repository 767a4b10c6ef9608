import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { PortTakenError } from "@tapedeck/infra/local/local-server-error";
import { envName } from "@tapedeck/shared/service/settings";
import { delay } from "@tapedeck/shared/sync/delay";
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
    const { server, port } = await holdAny(listener.host);
    held.push(server);
    chosen.push({ ...listener, port });
  }
  await Promise.all(held.map(release));
  return chosen;
}

/**
 * @throws CommandError that names every port that is taken, or that this user may not have. `timeoutMs`: how long they
 * may be taken by what an earlier start left behind and what is stopping now. `others`: named only if one of the listeners' is taken.
 */
export async function refuseTakenPorts(
  listeners: readonly Listener[],
  { timeoutMs, others }: { readonly timeoutMs: number; readonly others: readonly Listener[] },
): Promise<void> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const failures = await Promise.all(listeners.map(listenFailure));
    const forbidden = listeners.find((_, at) => failures[at] === "EACCES");
    if (forbidden !== undefined) throw new CommandError(forbiddenText(forbidden));
    // Other problems with an address are reported by the service that listens there.
    const taken = listeners.filter((_, at) => failures[at] === "EADDRINUSE");
    if (taken.length === 0) return;
    if (performance.now() > end) throw new CommandError(takenText([...taken, ...(await takenOf(others))]));
    await delay(100);
  }
}

async function takenOf(listeners: readonly Listener[]): Promise<readonly Listener[]> {
  const failures = await Promise.all(listeners.map(listenFailure));
  return listeners.filter((_, at) => failures[at] === "EADDRINUSE");
}

/** The same error, with the setting that chooses another port. */
export function withSetting(error: unknown, listeners: readonly Listener[]): unknown {
  const taken = error instanceof PortTakenError ? listeners.find(({ port }) => port === error.port) : undefined;
  return taken === undefined ? error : new CommandError(takenText([taken]));
}

/** One is a sentence; several, as another Tapedeck takes them, a table. */
function takenText(taken: readonly Listener[]): string {
  const [first, second] = taken;
  if (first !== undefined && second === undefined) {
    const { what, host, port } = first;
    return `port ${port} on ${host} is taken, so ${what} can't listen there: stop what uses it, or choose another (${settingText(first)}).`;
  }
  const width = (texts: readonly string[]) => Math.max(...texts.map((text) => text.length));
  const rows = taken.map(({ what, key, host, port }) => [`${host}:${port}`, what, envName(key)] as const);
  const [addresses, names] = [width(rows.map(([address]) => address)), width(rows.map(([, what]) => what))];
  const lines = rows.map(([address, what, name]) => `  ${address.padEnd(addresses)}  ${what.padEnd(names)}  ${name}`);
  return [`${taken.length} ports are taken: stop what uses them (another Tapedeck?), or choose others:`, ...lines].join(
    "\n",
  );
}

function forbiddenText(listener: Listener): string {
  const { what, host, port } = listener;
  return `this user may not listen on port ${port} of ${host} (${what}): choose one above 1023 (${settingText(listener)}).`;
}

function settingText({ key }: Listener): string {
  return `${key} in tapedeck.yaml, or ${envName(key)}`;
}

/** Undefined for a port that is free. */
export async function listenFailure({ host, port }: Pick<Listener, "host" | "port">): Promise<string | undefined> {
  try {
    await release(await hold(host, port));
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

/** A port below the ephemeral range: no other process is given it before the service starts. */
async function holdAny(host: string): Promise<{ readonly server: Server; readonly port: number }> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    try {
      return { server: await hold(host, port), port };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
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
