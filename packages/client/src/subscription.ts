import { type Backoff, backoff } from "./backoff.ts";
import { errorIn, type TapedeckError } from "./error.ts";
import { type Filter, filterOf, type PositionOrTime, positionOrTimeText } from "./filter.ts";
import type { Seat, ServerMessage, Subscriber } from "./link.ts";
import type { Message } from "./message.ts";

export type SubscriptionOptions<Pattern extends string = string> = Filter<Pattern> & {
  /**
   * `start`: the first event that is kept; `now` (the default): when the gateway answers; a position: the event after
   * it; a time: the first event recorded then or later.
   */
  readonly after?: "start" | "now" | PositionOrTime;
  /**
   * A position or a time, inclusive, or `now`: it ends there. A time that is still to come is waited for: until then it is
   * live. Without it there is no end.
   */
  readonly until?: "now" | PositionOrTime;
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
   * Events between the last one read and the first one kept are gone, after a long absence. With this callback the gap
   * is reported in its place, and the subscription continues; without it, it throws out_of_range.
   */
  readonly onGap?: (gap: Gap) => void;
};

/** All that was recorded after `after`, up to and including `until`, is lost to the reader. */
export type Gap = { readonly after: string; readonly until: string };

export type LinkPool = {
  readonly join: (subscriber: Subscriber) => Seat;
  /** Characters of messages that may wait for a consumer; one always fits. */
  readonly maxWaiting: number;
  readonly backoff: Backoff;
};

type Waiting = { readonly message: Message; readonly size: number } | { readonly gap: Gap };

/**
 * Every message once and in order, over as many connections as it takes. What was received is kept for the consumer and
 * not requested again. Buffers at most `maxWaiting` for a consumer that falls behind; then the gateway is asked to stop,
 * and to continue from there once the buffer is empty: the log is the buffer.
 */
export async function* subscription(
  options: SubscriptionOptions,
  pool: LinkPool,
  over: AbortSignal,
): AsyncGenerator<Message, void> {
  const inbox = new Inbox(options, pool);
  over.addEventListener("abort", inbox.wake);
  try {
    inbox.start();
    while (!over.aborted) {
      const next = inbox.next();
      if (next === undefined) {
        await inbox.changed();
      } else if ("gap" in next) {
        options.onGap?.(next.gap);
      } else {
        yield next.message;
        if (next.message.type === "complete") return;
      }
    }
  } finally {
    over.removeEventListener("abort", inbox.wake);
    inbox.leave();
  }
}

/** The messages sent by the gateway and not yet taken, and the position to resume from. */
class Inbox implements Subscriber {
  readonly #options: SubscriptionOptions;
  readonly #maxWaiting: number;
  readonly #wait: ReturnType<typeof backoff>;
  readonly #seat: Seat;
  readonly #waiting: Waiting[] = [];
  #held = 0;
  #after: string | undefined;
  #until: string | undefined;
  #wantsState: boolean;
  #isCaughtUp = false;
  #isFull = false;
  #failure: { readonly error: unknown } | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #resume = () => {};

  constructor(options: SubscriptionOptions, { join, maxWaiting, backoff: times }: LinkPool) {
    this.#options = options;
    this.#maxWaiting = maxWaiting;
    this.#wait = backoff(times);
    this.#after = options.after === undefined ? undefined : positionOrTimeText(options.after);
    this.#until = options.until === undefined ? undefined : positionOrTimeText(options.until);
    this.#wantsState = options.state === true;
    this.#seat = join(this);
  }

  readonly request = (): object => {
    const options = this.#options;
    // First where that is: asked for again after a cut, "now" would be later.
    if (this.#until === "now") return { after: "now", until: this.#until };
    return {
      filter: filterOf(options),
      ...(this.#after !== undefined && { after: this.#after }),
      ...(this.#until !== undefined && { until: this.#until }),
      ...(this.#wantsState && { state: true }),
      ...(options.original === true && { original: true }),
      ...(options.speed !== undefined && { speed: options.speed }),
    };
  };

  readonly received = ({ id: _, ...message }: ServerMessage, size: number): void => {
    if (message.type === "error") this.#refused(errorIn(message));
    else if (this.#until === "now") this.#learnEnd(message);
    else if (message.position !== undefined) this.#keep(message as Message, size);
  };

  readonly failed = (error: unknown): void => {
    this.#failure = { error };
    this.wake();
  };

  readonly wake = (): void => this.#resume();

  start(): void {
    this.#seat.start();
  }

  leave(): void {
    clearTimeout(this.#retry);
    this.#seat.leave();
  }

  next(): Waiting | undefined {
    const next = this.#waiting.shift();
    if (next !== undefined && "message" in next) this.#held -= next.size;
    return next;
  }

  /** Called when nothing waits. Throws what the subscription has failed with. */
  changed(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.#isFull) {
      this.#isFull = false;
      this.#seat.start();
    }
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  #learnEnd({ type, position }: ServerMessage): void {
    if (type !== "complete") return;
    this.#until = position;
    this.#seat.start();
  }

  #keep(message: Message, size: number): void {
    this.#wait.reset();
    this.#after = message.position;
    this.#wantsState = false;
    const isAgain = message.type === "caught_up" && this.#isCaughtUp;
    this.#isCaughtUp ||= message.type === "caught_up";
    this.#waiting.push({ message: isAgain ? { ...message, type: "bookmark" } : message, size });
    this.#held += size;
    if (this.#held >= this.#maxWaiting && message.type !== "complete") {
      this.#isFull = true;
      this.#seat.stop();
    }
    this.wake();
  }

  #refused(error: TapedeckError | undefined): void {
    if (error === undefined) this.failed(new Error("the gateway reported an error that can't be read"));
    else if (this.#isPassing(error.code)) this.#retry = setTimeout(() => this.#seat.start(), this.#wait.next());
    else if (error.code === "out_of_range" && error.earliest !== undefined && this.#options.onGap !== undefined) {
      this.#waiting.push({ gap: { after: this.#after ?? "start", until: error.earliest } });
      this.#after = error.earliest;
      this.#seat.start();
      this.wake();
    } else this.failed(error);
  }

  /** Whether the same may be asked again in a while. A state that takes too long does so the next time. */
  #isPassing(code: string): boolean {
    return code === "not_ready" || (code === "limit_exceeded" && !this.#wantsState);
  }
}
