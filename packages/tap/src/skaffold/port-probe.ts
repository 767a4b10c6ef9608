import { connect } from "node:net";
import { setTimeout } from "node:timers/promises";

/** What a port says to a TCP connection. `silent`: neither yes nor no within a second (never on loopback). */
export type PortAnswer = "open" | "refused" | "silent";

/** Opens and closes a connection without a word; Skaffold does not mind. */
export function probePort({ host, port }: { host: string; port: number }): Promise<PortAnswer> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1_000 });
    const settle = (answer: PortAnswer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("connect", () => settle("open"));
    socket.on("timeout", () => settle("silent"));
    socket.on("error", (cause: NodeJS.ErrnoException) => settle(cause.code === "ECONNREFUSED" ? "refused" : "silent"));
  });
}

/** Skaffold opens its port well before its first event, and to be there early is what keeps it safe. */
const pollMs = 50;

/** Resolves when the port takes connections, or with the signal. True when it was closed before. */
export async function portOpens(address: { host: string; port: number }, signal: AbortSignal): Promise<boolean> {
  let wasClosed = false;
  while (!signal.aborted) {
    const answer = await probePort(address);
    if (answer === "open") break;
    wasClosed ||= answer === "refused";
    await sleep(pollMs, signal);
  }
  return wasClosed;
}

/** Never rejects: ends early with the signal. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {});
}

/** "localhost:50051" is 127.0.0.1: Skaffold does not listen on ::1. Throws for what is no host and port. */
export function parseAddress(address: string): { host: string; port: number } {
  const [, host, port] = /^(?:(.+):)?(\d+)$/.exec(address) ?? [];
  if (port === undefined) throw new Error(`not an address: ${address}`);
  return { host: host === undefined || host === "localhost" ? "127.0.0.1" : host, port: Number(port) };
}
