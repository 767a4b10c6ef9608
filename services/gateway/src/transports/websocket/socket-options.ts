import type { Socket } from "node:net";
import type { Liveness } from "@tapedeck/shared/service/peer-liveness";
import type { TapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import type { Caller } from "../../call-context.ts";
import { defaultLimits } from "../../limits/settings.ts";
import type { CallWatch } from "../../metrics.ts";
import { liveness } from "../liveness.ts";

export type SocketOptions = {
  readonly api: Pick<TapedeckApi, "subscribe">;
  readonly caller: Caller;
  readonly watch: CallWatch;
  /** The connection below the WebSocket. */
  readonly tcp: Socket;
  readonly limits?: SocketLimits;
  readonly usage: SocketUsage;
};

/** Counts what a socket uses of its caller's limits. */
export type SocketUsage = {
  /** Counts one more live connection until `over` aborts. @throws TapedeckError limit_exceeded */
  readonly open: (over: AbortSignal) => void;
  /** Counts one more message. @throws TapedeckError limit_exceeded */
  readonly message: () => Promise<void>;
};

export type SocketLimits = Liveness & {
  /** Bytes that may wait for the peer to read them before the socket's subscriptions stop asking for more. */
  readonly unreadBytes: number;
  readonly subscriptions: number;
};

export const socketLimits: SocketLimits = {
  ...liveness,
  unreadBytes: defaultLimits.unreadBytes,
  subscriptions: defaultLimits.webSocket.subscriptions,
};
