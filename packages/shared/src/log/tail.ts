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
import { endOf, type Offset, offsetOf, type Sequence } from "./offset.ts";
import { type Ring, type RingLimits, ring } from "./ring.ts";

/** An entry of the ring. Decoded only when a subscriber gets it: most processes follow next to nothing. */
export class TailEntry {
  readonly offset: Offset;
  /** The subject's tokens, split once for all subscribers. */
  readonly tokens: readonly string[];
  readonly #message: Delivered;
  readonly #decode: Decode;
  #recorded: { readonly value: RecordedEvent | undefined } | undefined;

  constructor(message: Delivered, decode: Decode) {
    this.offset = offsetOf(message.seq);
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
  now(): { readonly ring: Ring<TailEntry>; readonly last: Offset } | undefined;
  /** Resolves when there is something new, or the signal aborts. Never rejects. */
  changed(signal: AbortSignal): Promise<void>;
};

export type TailDeps = StreamAccess & {
  readonly epoch: string;
  readonly decode: Decode;
  readonly warn: Warn;
  readonly limits?: RingLimits;
};

const defaultLimits: RingLimits = { entries: 4_096, bytes: 32 * 1024 * 1024 };
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
  return new LogTail(deps);
}

class LogTail implements Tail {
  readonly #deps: TailDeps;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  readonly #waiting = new Set<() => void>();
  #entries: Ring<TailEntry> | undefined;
  /** The last message that was read. */
  #last: Sequence = 0;
  #failed: Error | undefined;
  #wakeIsDue = false;
  #reconnects = new AbortController();

  constructor(deps: TailDeps) {
    this.#deps = deps;
    void this.#watchConnection();
    this.#running = this.#run();
  }

  now(): ReturnType<Tail["now"]> {
    if (this.#failed !== undefined) throw this.#failed;
    return this.#entries === undefined ? undefined : { ring: this.#entries, last: endOf(this.#last) };
  }

  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted || this.#failed !== undefined) return resolve();
      const resume = () => {
        this.#waiting.delete(resume);
        signal.removeEventListener("abort", resume);
        resolve();
      };
      this.#waiting.add(resume);
      signal.addEventListener("abort", resume);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /** Wakes once per turn of the event loop, however many events came in it. */
  #wake(): void {
    if (this.#wakeIsDue) return;
    this.#wakeIsDue = true;
    setImmediate(() => {
      this.#wakeIsDue = false;
      const all = [...this.#waiting];
      this.#waiting.clear();
      for (const resume of all) resume();
    });
  }

  async #watchConnection(): Promise<void> {
    for await (const { type } of this.#deps.nc.status()) {
      if (this.#closing.signal.aborted) return;
      if (type !== "reconnect" && type !== "close") continue;
      this.#reconnects.abort();
      this.#reconnects = new AbortController();
    }
  }

  async #run(): Promise<void> {
    const { nc, warn } = this.#deps;
    const closing = this.#closing.signal;
    const retry = backoff(50, 2_000);
    while (!closing.aborted) {
      if (nc.isClosed()) return this.#end(new Error("the connection to the log was closed"));
      const started = performance.now();
      try {
        await this.#readOn();
      } catch (err) {
        if (closing.aborted) break;
        if (err instanceof LogReplacedError) return this.#end(err);
        warn("following the log was interrupted; trying again", { after: this.#last, err });
      }
      if (performance.now() - started > 10_000) retry.reset();
      await delay(retry.next(), closing);
    }
    this.#end(new Error("the log was closed"));
  }

  #end(error: Error): void {
    this.#failed ??= error;
    this.#wake();
  }

  async #readOn(): Promise<void> {
    const { jsm, streamName, epoch, limits = defaultLimits } = this.#deps;
    const info = await jsm.streams.info(streamName);
    const logEnd = info.state.last_seq;
    if (epochOf(info) !== epoch || logEnd < this.#last)
      throw new LogReplacedError(`the log ${epoch} was replaced by another one`);
    if (this.#entries === undefined) {
      this.#entries = ring(endOf(logEnd), limits);
      this.#last = logEnd;
    }
    const entries = this.#entries;
    const consumer = await addConsumer(this.#deps, this.#last + 1, []);
    // Messages that the log dropped while nobody read will not come.
    if (consumer.pendingAtStart === 0) this.#last = Math.max(this.#last, logEnd);
    this.#wake();
    const signals = { signal: this.#closing.signal, lost: this.#reconnects.signal };
    await pump(this.#deps, consumer, signals, (message) => {
      this.#accept(entries, message);
      if (message.pending === 0 && this.#last < logEnd) this.#last = logEnd;
    });
  }

  #accept(entries: Ring<TailEntry>, message: Delivered): void {
    if (message.seq <= this.#last) return;
    const entry = new TailEntry(message, this.#deps.decode);
    this.#last = message.seq;
    if (mayErase(entry) && entry.recorded?.event.kind === "session.erased") {
      forget(entries, entry.recorded.event.session);
    }
    entries.push(entry, message.data.byteLength);
    this.#wake();
  }
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
  let answers = 0;
  let delivered = 0;
  let left = 0;
  let current: Disposable | undefined;

  const pullMore = () => {
    current?.[Symbol.dispose]();
    left = pullRequest.batch;
    current = pull(deps, consumer, pullRequest, (answer) => {
      try {
        answers++;
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

  const silence = setTimeout(() => {
    const before = answers;
    // This process may have been held up: then what has arrived meanwhile is read after its timers, and before this.
    setImmediate(() => {
      if (answers === before) reject(new Error("the log fell silent"));
    });
  }, lostAfterMs);
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
