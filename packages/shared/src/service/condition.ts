import type { NatsConnection } from "nats";
import { z } from "zod";
import { startInterval, stopTimer } from "../sync/timers.ts";

/** A recorder's condition, in sentences for people: what keeps it from recording, and other warnings. */
export type Condition = { readonly problems: readonly string[]; readonly warnings: readonly string[] };

const subject = "tapedeck.condition.ingest";
const defaultEveryMs = 1_000;
/** A recorder that was silent for so long is gone, unreachable or well. */
const forgottenMs = 5_000;

const conditionMessage = z.object({ who: z.string(), problems: z.array(z.string()), warnings: z.array(z.string()) });

/**
 * Publishes the condition every second on NATS while there is something to say, and once when that is over; nothing is
 * stored. A recorder that is well says nothing, so those that listen stay asleep.
 */
export function reportCondition(
  nats: Pick<NatsConnection, "publish">,
  who: string,
  now: () => Condition,
  everyMs = defaultEveryMs,
): Disposable {
  let wasWell = true;
  const timer = startInterval(() => {
    const { problems, warnings } = now();
    const isWell = problems.length === 0 && warnings.length === 0;
    if (isWell && wasWell) return;
    wasWell = isWell;
    try {
      nats.publish(subject, JSON.stringify({ who, problems, warnings }));
    } catch {
      // The connection was closed.
    }
  }, everyMs).unref();
  return { [Symbol.dispose]: () => stopTimer(timer) };
}

/** The conditions that the recorders on a NATS report. */
export class ReportedConditions {
  readonly #last = new Map<string, Condition & { readonly at: number }>();

  /** Listens until the connection is closed. */
  listen(nats: Pick<NatsConnection, "subscribe">): void {
    nats.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) this.#accept(message.data);
      },
    });
  }

  #accept(data: Uint8Array): void {
    try {
      const { who, ...condition } = conditionMessage.parse(JSON.parse(new TextDecoder().decode(data)));
      this.#last.set(who, { ...condition, at: performance.now() });
    } catch {
      // A message of another program.
    }
  }

  /** Each sentence once, of all recorders that reported lately. */
  get now(): Condition {
    for (const [who, { at }] of this.#last) if (performance.now() - at > forgottenMs) this.#last.delete(who);
    const all = [...this.#last.values()];
    const each = (what: keyof Condition) => [...new Set(all.flatMap((condition) => condition[what]))];
    return { problems: each("problems"), warnings: each("warnings") };
  }
}
