import type { NatsConnection } from "nats";
import { startTimer, stopTimer, type Timer } from "../sync/timers.ts";

/**
 * Times between two checks. A server alone loses no message without losing the connection. Between the servers of a cluster
 * one may be lost.
 */
export type CheckTimes = { readonly aloneMs: number; readonly inClusterMs: number };

export type CheckAgain = Disposable & {
  /** Checks at once: something was heard. */
  now(): void;
  /** Nothing can be heard: from now on the checks are as frequent as in a cluster. */
  isDeaf(): void;
};

/**
 * For what is heard on NATS, where no message is repeated: calls `check` after each time that the connection was lost, and now
 * and then, until it is disposed. A check that fails is repeated as soon as the next one would follow in a cluster.
 */
export function checkAgain(
  nats: Pick<NatsConnection, "info" | "status">,
  check: () => Promise<unknown>,
  { aloneMs, inClusterMs }: CheckTimes,
): CheckAgain {
  let isOver = false;
  let hears = true;
  let timer: Timer | undefined;
  const next = (hasFailed: boolean) => {
    stopTimer(timer);
    if (isOver) return;
    const losesNothing = hears && !hasFailed && nats.info?.cluster === undefined;
    timer = startTimer(now, losesNothing ? aloneMs : inClusterMs).unref();
  };
  const now = () => {
    check().then(
      () => next(false),
      () => next(true),
    );
  };
  const follow = async () => {
    for await (const { type } of nats.status()) {
      if (isOver) return;
      if (type === "reconnect") now();
    }
  };
  void follow();
  next(false);
  return {
    now,
    isDeaf() {
      hears = false;
      now();
    },
    [Symbol.dispose]: () => {
      isOver = true;
      stopTimer(timer);
    },
  };
}
