import { connect } from "node:net";
import { delay } from "@tapedeck/shared/sync/delay";

/** How a port answers a TCP connection. `silent`: no answer within a second (never on loopback). */
export type PortAnswer = "open" | "refused" | "silent";

/** Opens a connection and closes it without sending anything, which does not disturb Skaffold. */
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

/** Skaffold opens its port well before its first event, and an early connection is what keeps it safe. */
const probeIntervalMs = 50;

/** Resolves when the port takes connections, or with the signal. True if it was closed before. */
export async function portOpens(address: { host: string; port: number }, signal: AbortSignal): Promise<boolean> {
  let wasClosed = false;
  while (!signal.aborted) {
    const answer = await probePort(address);
    if (answer === "open") break;
    wasClosed ||= answer === "refused";
    await delay(probeIntervalMs, signal);
  }
  return wasClosed;
}

/** "localhost:50051" is 127.0.0.1, because Skaffold does not listen on ::1. Throws for anything but a host and a port. */
export function parseAddress(address: string): { host: string; port: number } {
  const [, host, port] = /^(?:(.+):)?(\d+)$/.exec(address) ?? [];
  if (port === undefined) throw new Error(`not an address: ${address}`);
  return { host: host === undefined || host === "localhost" ? "127.0.0.1" : host, port: Number(port) };
}
