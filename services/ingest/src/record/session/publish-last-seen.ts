import { Heard, type Heard_Collection } from "@tapedeck/proto/tapedeck/v1/heard";
import { fieldsOf } from "@tapedeck/shared/descriptors/message-fields";
import { lastSeenSubject } from "@tapedeck/shared/log/subjects";
import { ownValue } from "@tapedeck/shared/own-value";
import type { SourceName } from "@tapedeck/shared/source";
import { startInterval, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import { msOfTimestamp, type Timestamp, validTimestamp } from "@tapedeck/shared/time/timestamp";
import type { NatsConnection } from "nats";

/** Readers take a source for not heard that is not reported for three times as long as the last. */
const reportMs = { least: 1_000, max: 5_000 };

export type LastSeenPublisherOptions = {
  readonly nats: Pick<NatsConnection, "publish">;
  readonly source: SourceName;
  /** Ends the reports. */
  readonly signal: AbortSignal;
  /** Called with each list that was heard. */
  readonly onSeen?: ((collection: string, at: Timestamp) => void) | undefined;
};

/** `at` is undefined for a list that is late and was not heard yet. `heardAt`: by `performance.now()`. */
type SeenList = { readonly at: Timestamp | undefined; readonly heardAt: number; readonly late: boolean };

/** Reports when the lists of a polled source were heard last. Never throws and never waits, because recording comes first. */
export class LastSeenPublisher {
  readonly #options: LastSeenPublisherOptions;
  readonly #lists = new Map<string, SeenList>();
  #reportedAt = Number.NEGATIVE_INFINITY;
  /** From the first list on: most sources have none, and a thousand timers would keep a process awake. */
  #timer: Timer | undefined;
  /** What `performance.now()` is ahead of the tap's clock, which may be wrong and may be set. */
  #aheadMs: number | undefined;

  constructor(options: LastSeenPublisherOptions) {
    this.#options = options;
    options.signal.addEventListener("abort", () => stopTimer(this.#timer), { once: true });
  }

  /** A message has just come that the tap sent then. */
  sent(at: Timestamp): void {
    if (validTimestamp(at) !== undefined) this.#aheadMs = performance.now() - msOfTimestamp(at);
  }

  /** The upstream that is connected now may have other lists. Those of before are as old as readers know. */
  connected(): void {
    this.#lists.clear();
  }

  /** Reads an observation. The result holds nothing of its bytes: call it when everything that it reports is in the log. */
  read(channel: string, observation: Uint8Array, at: Timestamp): () => void {
    const lists = listsIn(channel, observation);
    return () => this.#recorded(lists, at);
  }

  #recorded({ seen, late }: Lists, at: Timestamp): void {
    const now = performance.now();
    // It may have waited in the tap's spill.
    const heardAt = this.#aheadMs === undefined ? now : Math.min(now, msOfTimestamp(at) + this.#aheadMs);
    for (const collection of seen) {
      this.#lists.set(collection, { at, heardAt, late: false });
      this.#options.onSeen?.(collection, at);
    }
    for (const collection of late) {
      const list = this.#lists.get(collection) ?? { at: undefined, heardAt: now };
      this.#lists.set(collection, { ...list, late: true });
    }
    if (this.#lists.size > 0 && !this.#options.signal.aborted)
      this.#timer ??= startInterval(() => this.#report(), reportMs.max).unref();
    const isDue = now - this.#reportedAt >= reportMs.least;
    if (late.length > 0 || (seen.length > 0 && isDue)) this.#report();
  }

  #report(): void {
    if (this.#lists.size === 0 || this.#options.signal.aborted) return;
    const { nats, source } = this.#options;
    this.#reportedAt = performance.now();
    const collections = Object.fromEntries(
      [...this.#lists].map(([name, { at, heardAt, late }]): [string, Heard_Collection] => [
        name,
        { heard_at: at, age_ms: BigInt(Math.round(this.#reportedAt - heardAt)), late },
      ]),
    );
    try {
      nats.publish(lastSeenSubject(source), Heard.encode({ source, collections }).finish());
    } catch {
      // The connection is closed. Readers see that there are no reports.
    }
  }
}

/** Field numbers of Observation, Late, Resources and Resources.Kind. */
const fields = { all: 1, same: 2, resources: 8, late: 9, kinds: 1, kind: 1 };

/** The collections of a Vagrant server by the kinds of its resources. */
const collectionsOfKinds: Readonly<Record<string, string>> = {
  target: "targets",
  project: "projects",
  basis: "bases",
  box: "boxes",
  runner: "runners",
};

type Lists = { readonly seen: readonly string[]; readonly late: readonly string[] };

/** Which lists an encoded Observation has, or says to be late. Reads no more of it than that. */
function listsIn(channel: string, observation: Uint8Array): Lists {
  const field = (observation[0] ?? 0) >>> 3;
  const named = (messages: readonly Uint8Array[]) =>
    messages.map((message) => {
      const [kind = Buffer.alloc(0)] = fieldsOf(message, fields.kind);
      return ownValue(collectionsOfKinds, Buffer.from(kind).toString()) ?? channel;
    });
  try {
    if (field === fields.all || field === fields.same) return { seen: [channel], late: [] };
    const inside = fieldsOf(observation, field);
    if (field === fields.late) return { seen: [], late: named(inside) };
    if (field !== fields.resources) return { seen: [], late: [] };
    return { seen: named(inside.flatMap((resources) => fieldsOf(resources, fields.kinds))), late: [] };
  } catch {
    // It can't be read, which is recorded.
    return { seen: [], late: [] };
  }
}
