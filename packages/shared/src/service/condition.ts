import type { NatsConnection } from "nats";
import { z } from "zod";

/** How a recorder is, in sentences for people: what keeps it from recording, and what else should be known. */
export type Condition = { readonly problems: readonly string[]; readonly warnings: readonly string[] };

const subject = "tapedeck.condition.ingest";
const everyMs = 1_000;
/** A service that has said nothing for so long is gone, or can't be heard. */
const forgottenMs = 5_000;

const told = z.object({ who: z.string(), problems: z.array(z.string()), warnings: z.array(z.string()) });

/** Tells it every second, to whoever listens on the same NATS; nothing is stored. */
export function tellCondition(nats: Pick<NatsConnection, "publish">, who: string, now: () => Condition): Disposable {
  const timer = setInterval(() => {
    try {
      nats.publish(subject, JSON.stringify({ who, ...now() }));
    } catch {
      // The connection was closed.
    }
  }, everyMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** What the recorders on a NATS have told of themselves. */
export class ToldConditions {
  readonly #last = new Map<string, Condition & { readonly at: number }>();

  /** Until the connection is closed. */
  listen(nats: Pick<NatsConnection, "subscribe">): void {
    nats.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) this.#hear(message.data);
      },
    });
  }

  #hear(data: Uint8Array): void {
    try {
      const { who, ...condition } = told.parse(JSON.parse(new TextDecoder().decode(data)));
      this.#last.set(who, { ...condition, at: performance.now() });
    } catch {
      // Somebody else's.
    }
  }

  /** Each sentence once, of all who were heard lately. */
  get now(): Condition {
    for (const [who, { at }] of this.#last) if (performance.now() - at > forgottenMs) this.#last.delete(who);
    const all = [...this.#last.values()];
    const each = (what: keyof Condition) => [...new Set(all.flatMap((condition) => condition[what]))];
    return { problems: each("problems"), warnings: each("warnings") };
  }
}
