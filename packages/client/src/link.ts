import { type Backoff, backoff, delay } from "./backoff.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { errorIn, TapedeckError } from "./error.ts";
import type { TapedeckEvent } from "./event.ts";
import type { UpstreamState } from "./message.ts";

/** The gateway's messages (PROTOCOL.md); those of a subscription have its `id`. */
export type ServerMessage = {
  readonly type: string;
  readonly id?: string;
  readonly position?: string;
  readonly event?: TapedeckEvent;
  readonly source?: string;
  readonly state?: UpstreamState;
  readonly error?: unknown;
};

export type Subscriber = {
  /** The current request, as PROTOCOL.md's `subscribe` without type and id. */
  readonly request: () => object;
  /** `size`: of its text. After `complete` and `error` the seat is stopped. */
  readonly received: (message: ServerMessage, size: number) => void;
  /** The seat is gone. */
  readonly failed: (error: unknown) => void;
};

/** A subscriber's place on a link: while it is started, it is subscribed whenever there is a connection. */
export type Seat = { start(): void; stop(): void; leave(): void };

export type LinkOptions = ConnectionOptions & {
  readonly backoff: Backoff;
  /** Why a socket was refused, which browsers hide from scripts. Undefined without a reason, or if waiting helps. */
  readonly refusal: (signal: AbortSignal) => Promise<Error | undefined>;
  readonly onConnection: (isOpen: boolean) => void;
};

type Sitting = { readonly subscriber: Subscriber; id: string | undefined; isStarted: boolean };

/** Ends after which the same connection would end so again: with what code they are thrown. */
const finalCloses: Readonly<Record<number, string>> = {
  1002: "invalid_argument",
  1007: "invalid_argument",
  1009: "limit_exceeded",
  4400: "invalid_argument",
  4401: "unauthenticated",
  4429: "limit_exceeded",
};

/** A little more than the gateway counts by. */
const heldMs = 1_100;

type End = { readonly wasOpen: boolean; readonly code: number; readonly reason: string };

/** A socket that reconnects, and closes when it has no subscriber. */
export class Link {
  readonly #options: LinkOptions;
  readonly #seats = new Set<Sitting>();
  readonly #subscribed = new Map<string, Sitting>();
  /** Subscriptions that the gateway was asked to stop, and has not confirmed. */
  readonly #leaving = new Set<string>();
  readonly #wait: ReturnType<typeof backoff>;
  #lastId = 0;
  /** What `onConnection` was last called with. */
  #reported: boolean | undefined;
  #send: ((message: object) => void) | undefined;
  #life: AbortController | undefined;
  #leaveAgainTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#wait = backoff(options.backoff);
  }

  get size(): number {
    return this.#seats.size;
  }

  join(subscriber: Subscriber): Seat {
    const seat: Sitting = { subscriber, id: undefined, isStarted: false };
    this.#seats.add(seat);
    if (this.#life === undefined) this.#begin();
    return {
      start: () => {
        seat.isStarted = this.#seats.has(seat);
        this.#subscribe(seat);
      },
      stop: () => this.#stop(seat),
      leave: () => {
        this.#stop(seat);
        this.#seats.delete(seat);
        if (this.#seats.size > 0) return;
        this.#life?.abort();
        this.#life = undefined;
      },
    };
  }

  #begin(): void {
    const life = new AbortController();
    this.#life = life;
    this.#stayConnected(life.signal).catch((error: unknown) => {
      if (!life.signal.aborted) this.#fail(error);
    });
  }

  #subscribe(seat: Sitting): void {
    if (this.#send === undefined || !seat.isStarted || seat.id !== undefined) return;
    // Each subscription has a new id, so that messages still in flight to an earlier one are ignored.
    seat.id = String(++this.#lastId);
    this.#subscribed.set(seat.id, seat);
    this.#send({ type: "subscribe", id: seat.id, ...seat.subscriber.request() });
  }

  #forget(seat: Sitting): void {
    if (seat.id !== undefined) this.#subscribed.delete(seat.id);
    seat.id = undefined;
  }

  #stop(seat: Sitting): void {
    seat.isStarted = false;
    if (seat.id !== undefined && this.#send !== undefined) {
      this.#leaving.add(seat.id);
      this.#send({ type: "unsubscribe", id: seat.id });
    }
    this.#forget(seat);
  }

  /** The gateway ignores a client over its message rate for the rest of that second. */
  #leaveAgain(): void {
    this.#leaveAgainTimer ??= setTimeout(() => {
      this.#leaveAgainTimer = undefined;
      for (const id of this.#leaving) this.#send?.({ type: "unsubscribe", id });
    }, heldMs);
  }

  #fail(error: unknown): void {
    const all = [...this.#seats];
    this.#seats.clear();
    this.#life?.abort();
    this.#life = undefined;
    for (const seat of all) {
      this.#forget(seat);
      seat.subscriber.failed(error);
    }
  }

  async #stayConnected(signal: AbortSignal): Promise<void> {
    const { refusal } = this.#options;
    while (!signal.aborted) {
      const end = await this.#oneConnection(signal);
      if (signal.aborted) return;
      if (end.wasOpen) this.#report(false);
      const error = final(end) ?? (end.wasOpen ? undefined : await refusal(signal));
      if (signal.aborted) return;
      if (error !== undefined) return this.#fail(error);
      // The first connection of all could not be opened.
      this.#report(false);
      await delay(this.#wait.next(), signal);
    }
  }

  #report(isOpen: boolean): void {
    if (this.#reported === isOpen) return;
    this.#reported = isOpen;
    this.#options.onConnection(isOpen);
  }

  async #oneConnection(signal: AbortSignal): Promise<End> {
    let resolve = (_: End) => {};
    const lost = new Promise<End>((done) => {
      resolve = done;
    });
    const connection = new Connection(this.#options, {
      opened: () => {
        this.#send = (message) => connection.send(message);
        this.#report(true);
        for (const seat of this.#seats) this.#subscribe(seat);
      },
      received: (text) => {
        const message = parsed(text);
        if (message === undefined) resolve({ wasOpen: true, code: 1007, reason: "it is not a Tapedeck server" });
        else this.#take(message, text.length);
      },
      lost: (end) => resolve(end),
    });
    const leave = () => resolve({ wasOpen: false, code: 1000, reason: "left" });
    signal.addEventListener("abort", leave);
    try {
      return await lost;
    } finally {
      signal.removeEventListener("abort", leave);
      connection.close();
      this.#send = undefined;
      clearTimeout(this.#leaveAgainTimer);
      this.#leaveAgainTimer = undefined;
      this.#leaving.clear();
      for (const seat of this.#seats) this.#forget(seat);
    }
  }

  #take(message: ServerMessage, size: number): void {
    if (message.position !== undefined) this.#wait.reset();
    if (message.type === "error" && message.id === undefined) {
      // An error without an id concerns the socket, or one side does not know the protocol.
      const error = errorIn(message);
      if (error?.code === "limit_exceeded") this.#leaveAgain();
      else if (error !== undefined) this.#fail(error);
      return;
    }
    if (message.type === "complete") this.#leaving.delete(message.id ?? "");
    const seat = this.#subscribed.get(message.id ?? "");
    if (seat === undefined) return;
    if (message.type === "complete" || message.type === "error") {
      seat.isStarted = false;
      this.#forget(seat);
    }
    seat.subscriber.received(message, size);
  }
}

function final({ code, reason }: { readonly code: number; readonly reason: string }): TapedeckError | undefined {
  const error = finalCloses[code];
  if (error === undefined) return undefined;
  return new TapedeckError({ code: error, message: reason || `the gateway closed the connection with ${code}` });
}

function parsed(text: string): ServerMessage | undefined {
  try {
    const message = JSON.parse(text) as ServerMessage | null;
    return typeof message?.type === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}
