import { type Backoff, backoff, pause } from "./backoff.ts";
import { type ConnectionOptions, openConnection } from "./connection.ts";
import { errorIn, TapedeckError } from "./error.ts";
import type { TapedeckEvent } from "./event.ts";
import type { UpstreamState } from "./message.ts";

/** What the gateway says (PROTOCOL.md); of a subscription with its `id`. */
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
  /** What to ask for now, as PROTOCOL.md's `subscribe` has it, without type and id. */
  readonly request: () => object;
  /** `size`: of its text. After `complete` and `error` the seat is stopped. */
  readonly received: (message: ServerMessage, size: number) => void;
  /** The seat is gone. */
  readonly failed: (error: unknown) => void;
};

/** A subscriber's place on a link: while it is started, it is subscribed whenever there is a connection. */
export type Seat = { start(): void; stop(): void; leave(): void };

/** A socket that comes back, and closes when nobody sits on it. */
export type Link = { readonly size: number; join(subscriber: Subscriber): Seat };

export type LinkOptions = ConnectionOptions & {
  readonly backoff: Backoff;
  /** Why a socket was not let in: a script is not told. Undefined when there is nothing to say, or waiting helps. */
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

export function openLink(options: LinkOptions): Link {
  const seats = new Set<Sitting>();
  const subscribed = new Map<string, Sitting>();
  /** Asked to stop, and not answered. */
  const leaving = new Set<string>();
  const wait = backoff(options.backoff);
  let ids = 0;
  let send: ((message: object) => void) | undefined;
  let life: AbortController | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;

  function subscribe(seat: Sitting): void {
    if (send === undefined || !seat.isStarted || seat.id !== undefined) return;
    // A new id each time: what is still under way to an earlier one is nobody's.
    seat.id = String(++ids);
    subscribed.set(seat.id, seat);
    send({ type: "subscribe", id: seat.id, ...seat.subscriber.request() });
  }

  function forget(seat: Sitting): void {
    if (seat.id !== undefined) subscribed.delete(seat.id);
    seat.id = undefined;
  }

  function stop(seat: Sitting): void {
    seat.isStarted = false;
    if (seat.id !== undefined && send !== undefined) {
      leaving.add(seat.id);
      send({ type: "unsubscribe", id: seat.id });
    }
    forget(seat);
  }

  /** Who says more than it may is not obeyed for the rest of that second. */
  function leaveAgain(): void {
    again ??= setTimeout(() => {
      again = undefined;
      for (const id of leaving) send?.({ type: "unsubscribe", id });
    }, heldMs);
  }

  function fail(error: unknown): void {
    const all = [...seats];
    seats.clear();
    life?.abort();
    life = undefined;
    for (const seat of all) {
      forget(seat);
      seat.subscriber.failed(error);
    }
  }

  async function stayConnected(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const end = await oneConnection(signal);
      if (signal.aborted) return;
      if (end.wasOpen) options.onConnection(false);
      const error = final(end) ?? (end.wasOpen ? undefined : await options.refusal(signal));
      if (signal.aborted) return;
      if (error !== undefined) return fail(error);
      await pause(wait.next(), signal);
    }
  }

  type End = { readonly wasOpen: boolean; readonly code: number; readonly reason: string };

  async function oneConnection(signal: AbortSignal): Promise<End> {
    let resolve = (_: End) => {};
    const lost = new Promise<End>((done) => {
      resolve = done;
    });
    const connection = openConnection(options, {
      opened() {
        send = connection.send;
        options.onConnection(true);
        for (const seat of seats) subscribe(seat);
      },
      received(text) {
        const message = parsed(text);
        if (message === undefined) resolve({ wasOpen: true, code: 1007, reason: "this is no Tapedeck" });
        else take(message, text.length);
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
      send = undefined;
      clearTimeout(again);
      again = undefined;
      leaving.clear();
      for (const seat of seats) forget(seat);
    }
  }

  function take(message: ServerMessage, size: number): void {
    if (message.position !== undefined) wait.reset();
    if (message.type === "error" && message.id === undefined) {
      // To nobody in particular: it is about the socket, or one of us does not know the protocol.
      const error = errorIn(message);
      if (error?.code === "limit_exceeded") leaveAgain();
      else if (error !== undefined) fail(error);
      return;
    }
    if (message.type === "complete") leaving.delete(message.id ?? "");
    const seat = subscribed.get(message.id ?? "");
    if (seat === undefined) return;
    if (message.type === "complete" || message.type === "error") {
      seat.isStarted = false;
      forget(seat);
    }
    seat.subscriber.received(message, size);
  }

  return {
    get size() {
      return seats.size;
    },
    join(subscriber) {
      const seat: Sitting = { subscriber, id: undefined, isStarted: false };
      seats.add(seat);
      if (life === undefined) {
        const begun = new AbortController();
        life = begun;
        stayConnected(begun.signal).catch((error: unknown) => {
          if (!begun.signal.aborted) fail(error);
        });
      }
      return {
        start() {
          seat.isStarted = seats.has(seat);
          subscribe(seat);
        },
        stop: () => stop(seat),
        leave() {
          stop(seat);
          seats.delete(seat);
          if (seats.size > 0) return;
          life?.abort();
          life = undefined;
        },
      };
    },
  };
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
