import { once } from "node:events";
import type { ServerWritableStream } from "@grpc/grpc-js";
import type { RecordedEnd } from "./recording.ts";

export type HandlerHealth = {
  /** A listener does not read what it is sent. */
  readonly stalled: boolean;
  /** A listener left during its replay: the next event hangs. */
  readonly doomed: boolean;
  readonly hung: boolean;
  readonly listeners: number;
  /** Streams opened so far. */
  readonly opened: number;
};

export type EventCall = ServerWritableStream<Buffer, Buffer>;

export type HandlerOptions = {
  /** The behaviour of the real server when a reader leaves during its replay. */
  readonly leavingInReplayHangs: boolean;
  /** Gives every new stream's replay; live events then go out between replayed ones. Absent: the log's order. */
  readonly mixReplay?: (log: readonly Buffer[]) => readonly Buffer[];
};

type Listener = { readonly call: EventCall; readonly replayed: PromiseWithResolvers<void>; closed: boolean };

/** What Skaffold keeps per API: one log, its listeners, and one lock around both. */
export class EventHandler {
  readonly #options: HandlerOptions;
  readonly #listeners = new Set<Listener>();
  readonly #health = { stalled: false, doomed: false, hung: false, listeners: 0, opened: 0 };
  #log: Buffer[] = [];
  #broken: RecordedEnd | undefined;
  #lock: Promise<unknown> = Promise.resolve();

  constructor(options: HandlerOptions) {
    this.#options = options;
  }

  get health(): HandlerHealth {
    return this.#health;
  }

  /** Forgets what later listeners would get (application logs at the start of a dev loop). */
  clear(): void {
    this.#log = [];
  }

  /** Sends an event to every listener, one after the other. Resolves when the last one has taken it, which may be never. */
  handOver(bytes: Buffer): Promise<void> {
    return this.#locked(async () => {
      await this.#hangIfDoomed();
      this.#log.push(bytes);
      this.#health.stalled = true;
      for (const listener of this.#listeners) await this.#deliver(listener, bytes);
      this.#health.stalled = false;
    });
  }

  /** Fails every stream from now on, because the next event can't be sent. */
  breakOff(end: RecordedEnd): Promise<void> {
    return this.#locked(async () => {
      this.#broken = end;
      for (const listener of this.#listeners) {
        await listener.replayed.promise;
        this.#remove(listener);
        fail(listener.call, end);
      }
    });
  }

  async open(call: EventCall): Promise<void> {
    const { mixReplay, leavingInReplayHangs } = this.#options;
    this.#health.opened++;
    const listener: Listener = { call, replayed: Promise.withResolvers(), closed: false };
    call.on("cancelled", () => {
      listener.closed = true;
    });
    const [snapshot, failure] = await this.#locked(() => {
      this.#listeners.add(listener);
      this.#health.listeners = this.#listeners.size;
      return [mixReplay?.(this.#log) ?? this.#log.slice(), this.#broken];
    });
    await replay(listener, snapshot);
    // An error during the replay leaves the listener registered, and its stream is no longer read.
    if (listener.closed || failure !== undefined) {
      if (leavingInReplayHangs) this.#health.doomed = true;
      else this.#remove(listener);
    }
    if (failure !== undefined) fail(call, failure);
    listener.replayed.resolve();
  }

  #locked<T>(work: () => T | Promise<T>): Promise<T> {
    const done = this.#lock.then(work);
    this.#lock = done;
    return done;
  }

  /** The deadlock of the real server: the lock is held forever, so later streams get no answer either. */
  async #hangIfDoomed(): Promise<void> {
    if (!this.#health.doomed) return;
    this.#health.hung = true;
    await new Promise<never>(() => {});
  }

  async #deliver(listener: Listener, bytes: Buffer): Promise<void> {
    if (this.#options.mixReplay === undefined) await listener.replayed.promise;
    if (listener.closed) this.#remove(listener);
    else await send(listener.call, bytes);
  }

  #remove(listener: Listener): void {
    this.#listeners.delete(listener);
    this.#health.listeners = this.#listeners.size;
  }
}

async function replay(listener: Listener, snapshot: readonly Buffer[]): Promise<void> {
  for (const bytes of snapshot) {
    if (listener.closed) return;
    await send(listener.call, bytes);
  }
}

/** Resolves when the stream takes more. A reader that stops reading blocks its server here. */
async function send(call: EventCall, bytes: Buffer): Promise<void> {
  if (isOver(call) || call.write(bytes) || isOver(call)) return;
  const taken = new AbortController();
  const { signal } = taken;
  await Promise.race([once(call, "drain", { signal }), once(call, "cancelled", { signal })]);
  taken.abort();
}

function isOver(call: EventCall): boolean {
  return call.cancelled || call.destroyed;
}

function fail(call: EventCall, { code, message }: RecordedEnd): void {
  call.emit("error", { code, details: message });
}
