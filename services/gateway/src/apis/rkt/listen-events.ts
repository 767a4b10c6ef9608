import type { EventFilter } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { Event as RktEvent } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { Event } from "@tapedeck/shared/events/codec";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import { listOf } from "@tapedeck/shared/rkt/entries";
import { pause } from "@tapedeck/shared/sync/delay";
import { eventsIn, type ScopeDeps, type SessionScope } from "../session-scope.ts";
import { rktEvent } from "./events.ts";
import { eventMatches } from "./filters.ts";

/** A message grows no further than this: clients take 4 MiB by default, and one look can tell of thousands of pods. */
const mostBytes = 1 << 20;

/** @throws TapedeckError invalid_argument */
export function assertEventFilter({ since_time, until_time }: EventFilter): void {
  if (since_time === 0n || until_time === 0n || since_time <= until_time) return;
  const message = `filter.since_time ${since_time} is after filter.until_time ${until_time}: nothing is between them`;
  throw invalidArgument(message, "filter.since_time");
}

/**
 * The scope's events as rkt's API was meant to tell them, each message a v1alpha.ListenEventsResponse: what one look
 * showed travels together, and waits for no longer than it takes to see that nothing more is there. A future
 * `since_time` keeps it silent until then; `until_time` ends it, at once when it is past.
 *
 * Every event from where the scope starts is read, whatever `since_time`: an event's time is its own clock's, and can be
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
  let nothingMore = Promise.withResolvers<void>();
  try {
    await untilMoment(filter.since_time, over);
    const { source, afterSeq } = scope;
    const subjects = [
      eventSubject(source, "pods", "pod.started"),
      eventSubject(source, "pods", "app.started"),
      eventSubject(source, "images", "image.imported"),
    ];
    const options = { signal: over, due: alarm(filter.until_time, over), reached: () => nothingMore.resolve() };
    const events = eventsIn(deps, scope, { afterSeq, subjects }, options);
    let look = "";
    let waiting: Uint8Array[] = [];
    let bytes = 0;
    const take = () => {
      const message = listOf(waiting);
      waiting = [];
      bytes = 0;
      return message;
    };
    for (;;) {
      nothingMore = Promise.withResolvers();
      const next = events.next();
      if (waiting.length > 0 && (await Promise.race([next, nothingMore.promise])) === undefined) yield take();
      const { done, value } = await next;
      const isSame = value !== undefined && lookOf(value.event) === look && bytes < mostBytes;
      if (waiting.length > 0 && !isSame) yield take();
      if (done === true) return;
      look = lookOf(value.event);
      const event = rktEvent(value.event);
      if (event === undefined || !eventMatches(event, filter)) continue;
      const encoded = RktEvent.encode(event).finish();
      waiting.push(encoded);
      bytes += encoded.byteLength;
    }
  } finally {
    left.abort();
  }
}

/** Equal for the events of one look at the host. */
function lookOf({ session, channel, observed_at }: Event): string {
  return `${session} ${channel} ${observed_at?.seconds}.${observed_at?.nanos}`;
}

/** Aborts at that moment, in seconds since 1970; 0: never. */
function alarm(seconds: bigint, over: AbortSignal): AbortSignal {
  const due = new AbortController();
  if (seconds !== 0n) void untilMoment(seconds, over).then(() => due.abort());
  return due.signal;
}

/** Timers take no more. */
const longestPauseMs = 2 ** 31 - 1;

async function untilMoment(seconds: bigint, signal: AbortSignal): Promise<void> {
  const left = () => Number(seconds) * 1_000 - Date.now();
  while (left() > 0 && !signal.aborted) await pause(Math.min(left(), longestPauseMs), signal);
}
