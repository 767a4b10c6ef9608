import { type Backoff, backoff } from "./backoff.ts";
import { errorIn, type TapedeckError } from "./error.ts";
import { type Filter, filterOf, type Moment, momentText } from "./filter.ts";
import type { Seat, ServerMessage, Subscriber } from "./link.ts";
import type { Message } from "./message.ts";

export type SubscriptionOptions<Pattern extends string = string> = Filter<Pattern> & {
  /**
   * `start`: the first event that is kept; `now` (the default): when the gateway answers; a position: the event after
   * it; a time: the first event recorded then or later.
   */
  readonly after?: "start" | "now" | Moment;
  /**
   * A position or a time, inclusive, or `now`: it ends there. A time that is still to come is waited for: until then it is
   * live. Without it there is no end.
   */
  readonly until?: "now" | Moment;
  /** First the state of the one source (and session) that the filter names; not with `start`. */
  readonly state?: boolean;
  /** Events carry the upstream's own messages. */
  readonly original?: boolean;
  /**
   * How fast history is played: 1 keeps the gaps between the events' recorded times, 10 is ten times as fast, up to 1,000.
   * `max` (the default) leaves them out. What happens after `caught_up` comes as it happens.
   */
  readonly speed?: number | "max";
  /** Ends it, without an error. */
  readonly signal?: AbortSignal;
  /**
   * Events between what was read last and what is kept are gone, as one was away for long. With this it is told, in its
   * place, and the subscription goes on; without it out_of_range is thrown.
   */
  readonly onGap?: (gap: Gap) => void;
};

/** All that was recorded after `after`, up to and including `until`, is lost to the reader. */
export type Gap = { readonly after: string; readonly until: string };

export type LinkPool = {
  readonly join: (subscriber: Subscriber) => Seat;
  /** Characters of messages that may wait for a consumer; one always fits. */
  readonly mostWaiting: number;
  readonly backoff: Backoff;
};

type Waiting = { readonly message: Message; readonly size: number } | { readonly gap: Gap };

/**
 * Every message once and in order, over as many connections as it takes. What was received is kept for the consumer and
 * not requested again. Buffers at most `mostWaiting` for a consumer that falls behind; then the gateway is asked to stop,
 * and to continue from there once the buffer is empty: the log is the buffer.
 */
export async function* subscription(
  asked: SubscriptionOptions,
  { join, mostWaiting, backoff: times }: LinkPool,
  over: AbortSignal,
): AsyncGenerator<Message, void> {
  const waiting: Waiting[] = [];
  const wait = backoff(times);
  let held = 0;
  let after = asked.after === undefined ? undefined : momentText(asked.after);
  let until = asked.until === undefined ? undefined : momentText(asked.until);
  let wantsState = asked.state === true;
  let isCaughtUp = false;
  let isFull = false;
  let failure: { readonly error: unknown } | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let wake = () => {};

  function request(): object {
    // First where that is: asked for again after a cut, "now" would be later.
    if (until === "now") return { after: "now", until };
    return {
      filter: filterOf(asked),
      ...(after !== undefined && { after }),
      ...(until !== undefined && { until }),
      ...(wantsState && { state: true }),
      ...(asked.original === true && { original: true }),
      ...(asked.speed !== undefined && { speed: asked.speed }),
    };
  }

  function received({ id: _, ...message }: ServerMessage, size: number): void {
    if (message.type === "error") refused(errorIn(message));
    else if (until === "now") learnEnd(message);
    else if (message.position !== undefined) keep(message as Message, size);
  }

  function learnEnd({ type, position }: ServerMessage): void {
    if (type !== "complete") return;
    until = position;
    seat.start();
  }

  function keep(message: Message, size: number): void {
    wait.reset();
    after = message.position;
    wantsState = false;
    const isAgain = message.type === "caught_up" && isCaughtUp;
    isCaughtUp ||= message.type === "caught_up";
    waiting.push({ message: isAgain ? { ...message, type: "bookmark" } : message, size });
    held += size;
    if (held >= mostWaiting && message.type !== "complete") {
      isFull = true;
      seat.stop();
    }
    wake();
  }

  function refused(error: TapedeckError | undefined): void {
    if (error === undefined) failed(new Error("the gateway reported an error that can't be read"));
    else if (isPassing(error.code)) retry = setTimeout(() => seat.start(), wait.next());
    else if (error.code === "out_of_range" && error.earliest !== undefined && asked.onGap !== undefined) {
      waiting.push({ gap: { after: after ?? "start", until: error.earliest } });
      after = error.earliest;
      seat.start();
      wake();
    } else failed(error);
  }

  /** Whether the same may be asked again in a while. A state that takes too long does so the next time. */
  const isPassing = (code: string) => code === "not_ready" || (code === "limit_exceeded" && !wantsState);

  function failed(error: unknown): void {
    failure = { error };
    wake();
  }

  const ended = () => wake();
  over.addEventListener("abort", ended);
  const seat = join({ request, received, failed });
  try {
    seat.start();
    while (!over.aborted) {
      const next = waiting.shift();
      if (next === undefined) {
        if (failure !== undefined) throw failure.error;
        if (isFull) {
          isFull = false;
          seat.start();
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if ("gap" in next) {
        asked.onGap?.(next.gap);
      } else {
        held -= next.size;
        yield next.message;
        if (next.message.type === "complete") return;
      }
    }
  } finally {
    clearTimeout(retry);
    over.removeEventListener("abort", ended);
    seat.leave();
  }
}
