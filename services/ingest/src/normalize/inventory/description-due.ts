import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { msBetween } from "@tapedeck/shared/time/timestamp";
import type { ObservationOutcome } from "./observing.ts";

type Counted = Pick<Event, "detail"> & { readonly kind: string };

/**
 * Knows when a channel has to be described anew, so that a resumed recorder can begin there: after so many events, and
 * before half of the time has passed for which the log keeps text, counted from the first text after the last
 * description. How much a job has printed is known from its text alone, and would start again from nothing without it.
 */
export class DescriptionDue {
  readonly #events: number;
  readonly #textTtl: number | undefined;
  #count = 0;
  #textSince: Timestamp | undefined;

  constructor(events: number, textTtl?: number | undefined) {
    this.#events = events;
    this.#textTtl = textTtl;
  }

  /** Takes in what is to be recorded. */
  count(outcome: ObservationOutcome): void {
    if (outcome.what !== "frame") return;
    for (const { kind, detail } of outcome.facts) this.#add({ kind, detail }, outcome.observedAt);
  }

  /** Takes in an event of the channel that is read back from the log. */
  resume(event: Event): void {
    this.#add(event, event.observed_at);
  }

  /** `more`: events for which a description that is due can wait. */
  isDue(at: Timestamp, more = 0): boolean {
    if (this.#count >= this.#events + more) return true;
    const since = this.#textSince;
    if (this.#textTtl === undefined || since === undefined) return false;
    const passedMs = msBetween(since, at);
    // Where the tap's clock was set back, how old the text is cannot be known.
    return passedMs < 0 || passedMs >= this.#textTtl * 500;
  }

  #add({ kind, detail }: Counted, at: Timestamp | undefined): void {
    if (kind === "inventory.described") {
      this.#count = 0;
      this.#textSince = undefined;
      return;
    }
    this.#count += 1;
    if (detail?.$case === "text") this.#textSince ??= at;
  }
}
