import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { Heard } from "@tapedeck/proto/tapedeck/v1/heard";
import { everyHeardSubject } from "@tapedeck/shared/log/subjects";
import { compareTimestamps, msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import type { NatsConnection } from "nats";

/** Ingest reports each polled source that it records at least every 5 s. */
const reportedMs = 15_000;
/** More sources than a log can have. Reports beyond that are not kept. */
const maxSources = 100_000;

type Report = { readonly collections: Heard["collections"]; readonly receivedAt: number };

/** What is known of when a polled source was heard. */
export type SourceHeard = {
  readonly heardAt: Readonly<Record<string, Timestamp>>;
  /** The age of the collection that was heard longest ago, in ms. */
  readonly ageMs: number;
  /** Since when something that should have been heard was not: a list is late, or ingest reports nothing any more. */
  readonly notHeardSince: Timestamp | undefined;
};

/** When the polled sources were heard last, as ingest reports it beside the log. */
export class HeardSources {
  readonly #reports = new Map<string, Report>();
  readonly #now: () => number;

  /** `now`: a clock that never goes back, in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Listens on this connection until it is closed, or this is disposed. */
  listen(nats: Pick<NatsConnection, "subscribe">): Disposable {
    const subscription = nats.subscribe(everyHeardSubject, {
      callback: (error, message) => {
        if (error === null) this.receive(message.data);
      },
    });
    return { [Symbol.dispose]: () => subscription.unsubscribe() };
  }

  receive(message: Uint8Array): void {
    try {
      const { source, collections } = Heard.decode(message);
      if (this.#reports.size >= maxSources && !this.#reports.has(source)) return;
      this.#reports.set(source, { collections, receivedAt: this.#now() });
    } catch {
      // Another program published it.
    }
  }

  /** Undefined: the source is not polled, or nobody has reported it. */
  of(source: string): SourceHeard | undefined {
    const report = this.#reports.get(source);
    if (report === undefined) return undefined;
    const sinceReport = this.#now() - report.receivedAt;
    const isReported = sinceReport < reportedMs;
    const heardAt: Record<string, Timestamp> = {};
    let ageMs = 0;
    let notHeardSince: Timestamp | undefined;
    for (const [name, { heard_at, age_ms, late }] of Object.entries(report.collections)) {
      if (heard_at === undefined) continue;
      heardAt[name] = heard_at;
      // A tap's clock may be ahead, and items may have waited in its spill.
      ageMs = Math.max(ageMs, Number(age_ms) + sinceReport, Date.now() - msOfTimestamp(heard_at));
      if (isReported && !late) continue;
      if (notHeardSince === undefined || compareTimestamps(heard_at, notHeardSince) < 0) notHeardSince = heard_at;
    }
    return { heardAt, ageMs: Math.round(ageMs), notHeardSince };
  }
}
