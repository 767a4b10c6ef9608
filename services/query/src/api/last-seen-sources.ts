import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { Heard } from "@tapedeck/proto/tapedeck/v1/heard";
import { everyLastSeenSubject } from "@tapedeck/shared/log/subjects";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { NatsConnection } from "nats";

/** Ingest reports each polled source that it records at least every 5 s. */
const reportedMs = 15_000;
/** More sources than a log can have. Reports beyond that are not kept. */
const maxSources = 100_000;

/** A collection that no report has named for so long is not polled any more. */
const forgottenMs = 3_600_000;

type SeenCollection = {
  readonly heardAt: Timestamp;
  readonly late: boolean;
  /** When ingest took the list, and when it reported that last, by the clock that never goes back. */
  readonly takenAt: number;
  readonly reportedAt: number;
};
type SeenCollections = ReadonlyMap<string, SeenCollection>;

/** What is known of when a polled source was heard. */
export type SourceLastSeen = {
  readonly heardAt: Readonly<Record<string, Timestamp>>;
  /** The age of the collection that was heard longest ago, in ms. */
  readonly ageMs: number;
  /** Since when something that should have been heard was not: a list is late, or ingest reports nothing any more. */
  readonly notHeardSince: Timestamp | undefined;
};

/** When the polled sources were heard last, as ingest reports it beside the log. */
export class LastSeenSources {
  readonly #reports = new Map<string, SeenCollections>();
  readonly #now: () => number;

  /** `now`: a clock that never goes back, in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Listens on this connection until it is closed, or this is disposed. */
  listen(nats: Pick<NatsConnection, "subscribe">): Disposable {
    const subscription = nats.subscribe(everyLastSeenSubject, {
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
      this.#reports.set(source, updated(this.#reports.get(source), collections, this.#now()));
    } catch {
      // Another program published it.
    }
  }

  /** Undefined: the source is not polled, or nobody has reported it. */
  of(source: string): SourceLastSeen | undefined {
    const report = this.#reports.get(source);
    if (report === undefined) return undefined;
    const now = this.#now();
    const heardAt = new Map<string, Timestamp>();
    let ageMs = 0;
    let notHeardSince: Timestamp | undefined;
    for (const [name, collection] of report) {
      const at = collection.heardAt;
      heardAt.set(name, at);
      // Not by `at`, which is of the tap's clock: that may be wrong.
      ageMs = Math.max(ageMs, now - collection.takenAt);
      if (now - collection.reportedAt < reportedMs && !collection.late) continue;
      if (notHeardSince === undefined || compareTimestamps(at, notHeardSince) < 0) notHeardSince = at;
    }
    return { heardAt: Object.fromEntries(heardAt), ageMs: Math.round(ageMs), notHeardSince };
  }
}

/**
 * What is known after another report. An ingest that has just started doesn't know what the one before heard, and reports
 * the lists that it has got, or that are late.
 */
function updated(before: SeenCollections | undefined, reported: Heard["collections"], now: number): SeenCollections {
  const recent = [...(before ?? [])].filter(([, { reportedAt }]) => now - reportedAt < forgottenMs);
  const collections = new Map(recent);
  for (const [name, { heard_at, age_ms, late }] of Object.entries(reported)) {
    const known = collections.get(name);
    if (heard_at !== undefined) {
      collections.set(name, { heardAt: heard_at, late, takenAt: now - Number(age_ms), reportedAt: now });
    } else if (known !== undefined) {
      collections.set(name, { ...known, late, reportedAt: now });
    }
  }
  return collections;
}
