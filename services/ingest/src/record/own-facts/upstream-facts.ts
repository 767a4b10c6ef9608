import type { Fact } from "../../normalize/fact.ts";
import { shorten } from "./shorten.ts";

export type ConnectionRef = { readonly connection: string; readonly address: string };

/** `channel`: the one that reports the steps, of a file that doesn't have the usual one. */
export function upstreamConnected(
  { connection, address, channel }: ConnectionRef & { readonly channel: string },
  tap: string,
): Fact {
  return upstreamFact("upstream.connected", `connected to ${address}`, { connection, address, channel, tap });
}

/** The tap vanished without closing the connection and has not come back. */
export function upstreamSilent({ connection, address }: ConnectionRef): Fact {
  const reason = "its tap disconnected without notice and has not returned";
  const value = { ...upstreamValue({ connection, address, reason }), unheard: true };
  return {
    kind: "upstream.lost",
    summary: `not heard: ${reason}`,
    inferred: true,
    detail: { $case: "upstream", value },
  };
}

/** The same tap is back and continues its connection. */
export function upstreamSeenAgain({ connection, address }: ConnectionRef): Fact {
  const value = { ...upstreamValue({ connection, address }), unheard: true };
  return {
    kind: "upstream.restored",
    summary: "its tap is back",
    inferred: true,
    detail: { $case: "upstream", value },
  };
}

/** The connection turned out to lead to the session's process. */
export function upstreamRestored({ connection, address }: ConnectionRef): Fact {
  return upstreamFact("upstream.restored", `${address} is taken for the same process as before`, {
    connection,
    address,
  });
}

export function upstreamLost({ connection, address }: ConnectionRef, reason: string, inferred = false): Fact {
  return { ...upstreamFact("upstream.lost", `disconnected: ${reason}`, { connection, address, reason }), inferred };
}

export function channelLost(
  { connection, address }: ConnectionRef,
  ended: { channel: string; code: number; reason: string },
): Fact {
  const { channel, reason } = ended;
  return upstreamFact("upstream.lost", `channel ${channel} ended: ${reason}`, { connection, address, ...ended });
}

type UpstreamFields = ConnectionRef & {
  readonly reason?: string;
  readonly channel?: string;
  readonly code?: number;
  readonly tap?: string;
};

export function upstreamFact(kind: Fact["kind"], summary: string, fields: UpstreamFields): Fact {
  return { kind, summary: shorten(summary), detail: { $case: "upstream", value: upstreamValue(fields) } };
}

function upstreamValue(fields: UpstreamFields) {
  return { channel: "", code: 0, tap: "", ...fields, reason: shorten(fields.reason ?? "") };
}
