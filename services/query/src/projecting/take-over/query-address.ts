import { connect } from "node:net";
import { delay } from "@tapedeck/shared/sync/delay";

/** Host and port of "10.0.0.3:7053" or "[fd00::3]:7053"; undefined for anything else. */
export function splitQueryAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, v6, name, digits] = /^(?:\[([\da-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/i.exec(text) ?? [];
  const [host, port] = [v6 ?? name, Number(digits)];
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}

const timeoutMs = 2_000;

/** Whether somebody takes connections at the address of a query. */
export async function takesConnections(address: string): Promise<boolean> {
  const at = splitQueryAddress(address);
  if (at === undefined) return false;
  const over = new AbortController();
  const socket = connect(at);
  const connected = new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  });
  try {
    return await Promise.race([connected, delay(timeoutMs, over.signal).then(() => false)]);
  } finally {
    over.abort();
    socket.destroy();
  }
}
