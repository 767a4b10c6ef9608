import { gatewayLink } from "@tapedeck/tap/push/link";
import { type PushOptions, pushItems, type RunningPush } from "@tapedeck/tap/push/push";
import { grpcEndpoint } from "../grpc-endpoint.ts";
import type { GrpcTarget } from "../grpc-target.ts";
import { type ConnectionFailure, failureOf } from "./connection-failure.ts";

export type PushTo = Pick<PushOptions, "spill" | "control" | "stream" | "signal" | "sourceTaken"> & {
  readonly target: GrpcTarget;
  /** Full name of the source that it is recorded as; reported with every connection. */
  readonly onWelcome?: (source: string) => void;
  /** The session that is recorded, whenever it is known that there is one or another one. */
  readonly onSession?: (session: string) => void;
  /** Called after every failed attempt and every lost connection; undefined if the reason is unknown. */
  readonly onAway?: (failure: ConnectionFailure | undefined) => void;
};

export type PushingTo = RunningPush & {
  readonly isConnected: () => boolean;
  /** Why it was not connected, the last time. */
  readonly failure: () => ConnectionFailure | undefined;
};

const silent = { info: () => {}, warn: () => {} };

/** Pushes a spill to a gateway over any network, with the token. */
export function pushTo({ target, onWelcome, onSession, onAway, sourceTaken, ...options }: PushTo): PushingTo {
  let isConnected = false;
  let failure: ConnectionFailure | undefined;
  const running = pushItems({
    ...options,
    link: gatewayLink(grpcEndpoint(target)),
    log: silent,
    sourceTaken: (message) => {
      const other = sourceTaken?.(message);
      if (other === undefined) failure = { why: "another tap records its source now", mends: true };
      return other;
    },
    welcomed: ({ source }) => {
      isConnected = true;
      failure = undefined;
      onWelcome?.(source);
    },
    ...(onSession && { sessionFound: onSession }),
    away: (error) => {
      isConnected = false;
      failure = failureOf(error, target) ?? failure;
      onAway?.(failure);
    },
  });
  return { ...running, isConnected: () => isConnected, failure: () => failure };
}
