import { backoff, delay } from "../sync/delay.ts";
import {
  addConsumer,
  type Consumer,
  type Delivered,
  exceedsMaxBytes,
  type PullAnswer,
  pull,
  type StreamAccess,
} from "./consumer.ts";
import type { Decode, Warn } from "./decode.ts";
import { epochOf } from "./epoch.ts";
import { LogReplacedError, type RecordedEvent } from "./log.ts";
import { type Ring, type RingLimits, ring } from "./ring.ts";

/** An entry of the ring. Decoded only when a subscriber gets it: most processes follow next to nothing. */
export class TailEntry {
  readonly seq: number;
  /** The subject's tokens, split once for all subscribers. */
  readonly tokens: readonly string[];
  readonly #message: Delivered;
  readonly #decode: Decode;
  #recorded: { readonly value: RecordedEvent | undefined } | undefined;

  constructor(message: Delivered, decode: Decode) {
    this.seq = message.seq;
    this.tokens = message.subject.split(".");
    this.#message = message;
    this.#decode = decode;
  }

  /** An event that the log has dropped must not be served from memory; undefined: it never expires. */
  get expiresAtMs(): number | undefined {
    return this.#message.expiresAtMs;
  }

  /** Undefined if the message is not an event, or its session was erased. */
  get recorded(): RecordedEvent | undefined {
    this.#recorded ??= { value: this.#decode(this.#message) };
    return this.#recorded.value;
  }

  erase(): void {
    this.#recorded = { value: undefined };
  }
}

/** The one reader of the log's end in a process, shared by all who follow. */
export type Tail = AsyncDisposable & {
  /** Undefined until the log was reached for the first time. Throws when the log was replaced or closed. */
  now(): { readonly ring: Ring<TailEntry>; readonly last: number } | undefined;
  /** Resolves when there is something new, or the signal aborts. Never rejects. */
  changed(signal: AbortSignal): Promise<void>;
};

export type TailDeps = StreamAccess & {
  readonly epoch: string;
  readonly decode: Decode;
  readonly warn: Warn;
  readonly limits?: RingLimits;
};

const idleHeartbeatMs = 500;
const lostAfterMs = 3 * idleHeartbeatMs;
const ms = 1_000_000;
/** The bytes keep the server from taking us for a slow consumer when large messages come in a row; any one fits. */
const pullRequest = {
  batch: 1_000,
  max_bytes: 16 * 1024 * 1024,
  expires: 30_000 * ms,
  idle_heartbeat: idleHeartbeatMs * ms,
};

export function openTail(deps: TailDeps): Tail {
  const { nc, jsm, streamName, epoch, decode, warn, limits = { entries: 4_096, bytes: 32 * 1024 * 1024 } } = deps;
  const closing = new AbortController();
  const waiting = new Set<() => void>();
  let entries: Ring<TailEntry> | undefined;
  let last = 0;
  let failed: Error | undefined;
  let wakeIsDue = false;

  /** Wakes once per turn of the event loop, however many events came in it. */
  const wake = () => {
    if (wakeIsDue) return;
    wakeIsDue = true;
    setImmediate(() => {
      wakeIsDue = false;
      const all = [...waiting];
      waiting.clear();
      for (const resume of all) resume();
    });
  };

  const end = (error: Error) => {
    failed ??= error;
    wake();
  };

  const accept = (message: Delivered) => {
    if (message.seq <= last || entries === undefined) return;
    const entry = new TailEntry(message, decode);
    last = message.seq;
    if (mayErase(entry) && entry.recorded?.event.kind === "session.erased") {
      forget(entries, entry.recorded.event.session);
    }
    entries.push(entry, message.data.byteLength);
    wake();
  };

  let reconnects = new AbortController();
  const watchConnection = async () => {
    for await (const { type } of nc.status()) {
      if (closing.signal.aborted) return;
      if (type !== "reconnect" && type !== "close") continue;
      reconnects.abort();
      reconnects = new AbortController();
    }
  };
  void watchConnection();

  const readOn = async () => {
    const info = await jsm.streams.info(streamName);
    const logEnd = info.state.last_seq;
    if (epochOf(info) !== epoch || logEnd < last)
      throw new LogReplacedError(`the log ${epoch} was replaced by another one`);
    if (entries === undefined) {
      entries = ring(logEnd, limits);
      last = logEnd;
    }
    const consumer = await addConsumer(deps, last, []);
    // Messages that the log dropped while nobody read will not come.
    if (consumer.pendingAtStart === 0) last = Math.max(last, logEnd);
    wake();
    await pump(deps, consumer, { signal: closing.signal, lost: reconnects.signal }, (message) => {
      accept(message);
      if (message.pending === 0 && last < logEnd) last = logEnd;
    });
  };

  const run = async () => {
    const retry = backoff(50, 2_000);
    while (!closing.signal.aborted) {
      if (nc.isClosed()) return end(new Error("the connection to the log was closed"));
      const started = performance.now();
      try {
        await readOn();
      } catch (err) {
        if (closing.signal.aborted) break;
        if (err instanceof LogReplacedError) return end(err);
        warn("following the log was interrupted; trying again", { afterSeq: last, err });
      }
      if (performance.now() - started > 10_000) retry.reset();
      await delay(retry.next(), closing.signal);
    }
    end(new Error("the log was closed"));
  };
  const running = run();

  return {
    now() {
      if (failed !== undefined) throw failed;
      return entries === undefined ? undefined : { ring: entries, last };
    },
    changed(signal) {
      return new Promise((resolve) => {
        if (signal.aborted || failed !== undefined) return resolve();
        const resume = () => {
          waiting.delete(resume);
          signal.removeEventListener("abort", resume);
          resolve();
        };
        waiting.add(resume);
        signal.addEventListener("abort", resume);
      });
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await running;
    },
  };
}

/** Decides by the subject, which ends with the channel and the noun of the kind. */
function mayErase({ tokens }: TailEntry): boolean {
  return tokens.at(-1) === "session" && tokens.at(-2) === "tapedeck";
}

/** Erased events must not be served from memory. Events after the erasure were recorded anew. */
function forget(entries: Ring<TailEntry>, session: string): void {
  let index = entries.indexAfter(entries.floor);
  for (let entry = entries.at(index); entry !== undefined; entry = entries.at(++index)) {
    if (entry.recorded?.event.session === session) entry.erase();
  }
}

/** Pulls until the consumer or the server is gone, which is an error, or the signal aborts. */
async function pump(
  deps: StreamAccess,
  consumer: Consumer,
  { signal, lost }: { readonly signal: AbortSignal; readonly lost: AbortSignal },
  accept: (message: Delivered) => void,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let delivered = 0;
  let left = 0;
  let current: Disposable | undefined;

  const pullMore = () => {
    current?.[Symbol.dispose]();
    left = pullRequest.batch;
    current = pull(deps, consumer, pullRequest, (answer) => {
      try {
        silence.refresh();
        take(answer);
      } catch (err) {
        reject(err);
      }
    });
  };

  const take = (answer: PullAnswer) => {
    if (answer.type === "message") {
      if (answer.message.deliverySeq !== ++delivered) throw new Error("a message was lost on the way");
      accept(answer.message);
      if (--left === 0) pullMore();
      return;
    }
    const { code, description } = answer;
    if (code === 100) return; // idle heartbeat
    if (code === 404 || code === 408 || (code === 409 && exceedsMaxBytes(description))) return pullMore();
    throw new Error(`the log answered ${code} ${description}`);
  };

  const silence = setTimeout(() => reject(new Error("the log fell silent")), lostAfterMs);
  const abort = () => resolve();
  const reconnected = () => reject(new Error("reconnected"));
  signal.addEventListener("abort", abort);
  // A server that was away has forgotten the consumer, so there is no need to wait for missed heartbeats.
  lost.addEventListener("abort", reconnected);
  if (signal.aborted) resolve(); // aborted before the listener was added
  try {
    pullMore();
    await promise;
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", abort);
    lost.removeEventListener("abort", reconnected);
    current?.[Symbol.dispose]();
  }
}
