import { once } from "node:events";
import type { ServerWritableStream } from "@grpc/grpc-js";
import type { RecordedEnd } from "./recording.ts";

/** What Skaffold keeps per API: one log, its listeners, and one lock around both. */
export type EventHandler = {
  /** Hands an event to every listener, one after the other; returns when the last has taken it, which may be never. */
  readonly handOver: (bytes: Buffer) => Promise<void>;
  /** From here on every stream fails: what comes next can't be sent. */
  readonly breakOff: (status: RecordedEnd) => Promise<void>;
  readonly open: (call: EventCall) => Promise<void>;
  /** Forgets what later listeners would get (application logs at the start of a dev loop). */
  readonly clear: () => void;
  readonly health: HandlerHealth;
};

export type HandlerHealth = {
  /** A listener does not take what it is given. */
  readonly stalled: boolean;
  /** A listener left in its replay: the next event hangs. */
  readonly doomed: boolean;
  readonly hung: boolean;
  readonly listeners: number;
  /** Streams opened so far. */
  readonly opened: number;
};

export type EventCall = ServerWritableStream<Buffer, Buffer>;

export type HandlerOptions = {
  /** What the real server does when a reader leaves in its replay. */
  readonly leavingInReplayHangs: boolean;
  /** Gives every new stream's replay; live events then go out between replayed ones. Absent: the log's order. */
  readonly mixReplay?: (log: readonly Buffer[]) => readonly Buffer[];
};

type Listener = { readonly call: EventCall; readonly replayed: PromiseWithResolvers<void>; gone: boolean };

export function eventHandler({ leavingInReplayHangs, mixReplay }: HandlerOptions): EventHandler {
  let log: Buffer[] = [];
  let broken: RecordedEnd | undefined;
  let lock: Promise<unknown> = Promise.resolve();
  const listeners = new Set<Listener>();
  const health = { stalled: false, doomed: false, hung: false, listeners: 0, opened: 0 };

  function locked<T>(work: () => T | Promise<T>): Promise<T> {
    const done = lock.then(work);
    lock = done;
    return done;
  }

  /** The dead-lock of the real server: the lock is held for ever, so no later stream gets an answer either. */
  async function hangIfDoomed(): Promise<void> {
    if (!health.doomed) return;
    health.hung = true;
    await new Promise<never>(() => {});
  }

  async function deliver(listener: Listener, bytes: Buffer): Promise<void> {
    if (mixReplay === undefined) await listener.replayed.promise;
    if (listener.gone) remove(listener);
    else await send(listener.call, bytes);
  }

  function remove(listener: Listener): void {
    listeners.delete(listener);
    health.listeners = listeners.size;
  }

  async function replay(listener: Listener, snapshot: readonly Buffer[]): Promise<void> {
    for (const bytes of snapshot) {
      if (listener.gone) return;
      await send(listener.call, bytes);
    }
  }

  return {
    health,
    clear: () => {
      log = [];
    },
    handOver: (bytes) =>
      locked(async () => {
        await hangIfDoomed();
        log.push(bytes);
        health.stalled = true;
        for (const listener of listeners) await deliver(listener, bytes);
        health.stalled = false;
      }),
    breakOff: (status) =>
      locked(async () => {
        broken = status;
        for (const listener of listeners) {
          await listener.replayed.promise;
          remove(listener);
          fail(listener.call, status);
        }
      }),
    open: async (call) => {
      health.opened++;
      const listener: Listener = { call, replayed: Promise.withResolvers(), gone: false };
      call.on("cancelled", () => {
        listener.gone = true;
      });
      const [snapshot, failure] = await locked(() => {
        listeners.add(listener);
        health.listeners = listeners.size;
        return [mixReplay?.(log) ?? log.slice(), broken];
      });
      await replay(listener, snapshot);
      // An error in the replay leaves the listener registered, with nobody to take what it is given.
      if (listener.gone || failure !== undefined) {
        if (leavingInReplayHangs) health.doomed = true;
        else remove(listener);
      }
      if (failure !== undefined) fail(call, failure);
      listener.replayed.resolve();
    },
  };
}

/** Resolves when the stream takes more: a reader that stops reading stops its server here. */
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
