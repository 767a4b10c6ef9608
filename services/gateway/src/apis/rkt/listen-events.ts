import type { EventFilter } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Event as RktEvent } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { Event } from "@tapedeck/shared/events/codec";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import { listOf } from "@tapedeck/shared/rkt/entries";
import { delay } from "@tapedeck/shared/sync/delay";
import { followWithPauses } from "../follow-with-pauses.ts";
import { eventsIn, type ScopeDeps, type SessionScope } from "../session-scope.ts";
import { rktEvent } from "./events.ts";
import { eventMatches } from "./filters.ts";

/** A message grows no further: clients accept 4 MiB by default, and one observation can cover thousands of pods. */
const maxBytes = 1 << 20;

/** @throws TapedeckError invalid_argument */
export function assertEventFilter({ since_time, until_time }: EventFilter): void {
  if (since_time === 0n || until_time === 0n || since_time <= until_time) return;
  const message = `filter.since_time ${since_time} is after filter.until_time ${until_time}: the range is empty`;
  throw invalidArgument(message, "filter.since_time");
}

/**
 * The scope's events as rkt's API describes them; each message is a v1alpha.ListenEventsResponse. The events of one
 * observation travel together, and wait no longer than it takes to find that the log has no more for now. A future
 * `since_time` keeps the stream silent until then; `until_time` ends it, at once when it is past.
 *
 * Reads every event from the start of the scope, whatever `since_time`: an event's time is by its own clock, and can be
 * long before or somewhat after the moment of its record.
 */
export async function* listenEvents(
  deps: ScopeDeps,
  scope: SessionScope,
  filter: EventFilter,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const left = new AbortController();
  const over = AbortSignal.any([signal, left.signal]);
  try {
    await untilTime(filter.since_time, over);
    const { source, afterOffset } = scope;
    const subjects = [
      eventSubject(source, "pods", "pod.started"),
      eventSubject(source, "pods", "app.started"),
      eventSubject(source, "images", "image.imported"),
    ];
    const due = abortsAt(filter.until_time, over);
    const batch = new ObservationBatch();
    const events = followWithPauses(
      (options) => eventsIn(deps, scope, { afterOffset, subjects }, { ...options, due }),
      over,
    );
    for await (const recorded of events) {
      if (recorded === undefined) yield* batch.flush();
      else {
        yield* batch.startOrContinue(recorded.event);
        const event = rktEvent(recorded.event);
        if (event !== undefined && eventMatches(event, filter)) batch.add(event);
      }
    }
    yield* batch.flush();
  } finally {
    left.abort();
  }
}

/** Collects the events of one observation of the host into messages. */
class ObservationBatch {
  #observation = "";
  #events: Uint8Array[] = [];
  #bytes = 0;

  /** Yields the message of the observation before, when this event is of another one or finds no room. */
  *startOrContinue(event: Event): Generator<Uint8Array, void> {
    const observation = observationOf(event);
    if (observation !== this.#observation || this.#bytes >= maxBytes) yield* this.flush();
    this.#observation = observation;
  }

  add(event: RktEvent): void {
    const encoded = RktEvent.encode(event).finish();
    this.#events.push(encoded);
    this.#bytes += encoded.byteLength;
  }

  *flush(): Generator<Uint8Array, void> {
    if (this.#events.length === 0) return;
    const message = listOf(this.#events);
    this.#events = [];
    this.#bytes = 0;
    yield message;
  }
}

/** Equal for the events of one observation of the host. */
function observationOf({ session, channel, observed_at }: Event): string {
  return `${session} ${channel} ${observed_at?.seconds}.${observed_at?.nanos}`;
}

/** Aborts at a moment, in seconds since 1970; 0: never. */
function abortsAt(seconds: bigint, over: AbortSignal): AbortSignal {
  const due = new AbortController();
  if (seconds !== 0n) void untilTime(seconds, over).then(() => due.abort());
  return due.signal;
}

/** The longest delay that a timer accepts. */
const longestDelayMs = 2 ** 31 - 1;

async function untilTime(seconds: bigint, signal: AbortSignal): Promise<void> {
  const left = () => Number(seconds) * 1_000 - Date.now();
  while (left() > 0 && !signal.aborted) await delay(Math.min(left(), longestDelayMs), signal);
}
