// The end of the log, read once for all followers in this process.
//
//   nats-server --pull--> Pump --#accept--> ring (the latest events) --offer--> watches of armed followers
//                               \--#judgeJump: a sequence is missing: erased or expired (go on), or dropped (empty the ring)
//
// 1. The ring holds what came after `ring.floor` up to `#last`, without holes that a reader would have to know of.
// 2. All events of a message are in the ring before a follower that was woken continues.
// 3. A server that is silent or gone ends the pull within 1.5 s; another one continues after `#last`. A log that was
//    replaced ends the tail.
// 4. An erased session leaves the ring before its erasure is delivered to any follower.
// Why a server that is cut off is left: docs/decisions/0040-a-server-that-is-cut-off.md.
import { ownChannel } from "../../events/kinds.ts";
import { backoff, delay } from "../../sync/delay.ts";
import { startTimer, stopTimer, type Timer } from "../../sync/timers.ts";
import { infoOfLeader } from "../cluster/leader-info.ts";
import { epochOf } from "../epoch.ts";
import { LogReplacedError, type RecordedEvent } from "../log.ts";
import { endOf, type Offset, type Sequence } from "../offset.ts";
import {
  addConsumer,
  type Consumer,
  type Delivered,
  exceedsMaxBytes,
  type PullAnswer,
  pull,
  type StreamAccess,
} from "../reading/consumer.ts";
import type { ReadMessage, Warn } from "../reading/decode.ts";
import { Leader } from "../reading/leader.ts";
import { type Ring, type RingLimits, ring } from "./ring.ts";
import { SharedEvent } from "./shared-event.ts";
import { Watches } from "./watches.ts";

/** The one reader of the log's end in a process, shared by all followers. */
export type Tail = AsyncDisposable & {
  /** Undefined until the log was reached for the first time. Throws when the log was replaced or closed. */
  now(): { readonly ring: Ring<SharedEvent>; readonly last: Offset } | undefined;
  /** Those who follow. */
  readonly watches: Watches;
};

export type TailDeps = StreamAccess & {
  readonly epoch: string;
  readonly readMessage: ReadMessage;
  readonly warn: Warn;
  readonly limits?: RingLimits;
  /** Called when a session was erased, before those who follow learn of it. */
  readonly forget?: (session: string, erasedAt: Offset) => void;
};

const defaultLimits: RingLimits = { entries: 4_096, bytes: 32 * 1024 * 1024 };
/**
 * How often a server shows that it is there. Once a whole pull has brought nothing, it does so rarely: a thousand workspaces
 * in which nothing happens would cost a third of a core otherwise. A server that is gone is noticed that much later then,
 * where the connection itself does not break.
 */
const paces = {
  busy: { heartbeatMs: 500, lostAfterMs: 1_500 },
  quiet: { heartbeatMs: 10_000, lostAfterMs: 15_000 },
} as const;
const nanosPerMs = 1_000_000;
/** The bytes keep the server from taking us for a slow consumer when large messages come in a row; any one fits. */
const pullRequest = {
  batch: 1_000,
  max_bytes: 16 * 1024 * 1024,
  expires: 30_000 * nanosPerMs,
};

export function openTail(deps: TailDeps): Tail {
  return new LogTail(deps);
}

class LogTail implements Tail {
  readonly #deps: TailDeps;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  readonly watches = new Watches();
  #entries: Ring<SharedEvent> | undefined;
  /** The last message that was read. */
  #last: Sequence = 0;
  /** What was delivered behind a jump, until it is known what the jump is. */
  #held: Delivered[] | undefined;
  #failed: Error | undefined;
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#running;
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
    this.watches.wakeAll();
  }

  async #readOn(): Promise<void> {
    const { jsm, streamName, epoch, limits = defaultLimits } = this.#deps;
    const info = await infoOfLeader(jsm, streamName);
    const logEnd = info.state.last_seq;
    if (epochOf(info) !== epoch || logEnd < this.#last) throw new LogReplacedError(epoch);
    if (this.#entries === undefined) {
      this.#entries = ring(endOf(logEnd), limits);
      this.#last = logEnd;
    }
    const entries = this.#entries;
    // Messages that the log dropped while no reader pulled will not come. The leader knows: the server that delivers
    // may lag behind it, and have nothing left while more is to come.
    const leader = new Leader(this.#deps);
    const newest = await leader.lastMessage([]);
    this.#held = undefined;
    await this.#skipLost(entries, leader, newest);
    const passDropped = () => {
      if (this.#last >= newest && this.#last < logEnd) this.#last = logEnd;
    };
    const consumer = await addConsumer(this.#deps, this.#last + 1, []);
    passDropped();
    this.watches.wakeAll();
    const unjudged = new AbortController();
    const signals = {
      signal: this.#closing.signal,
      lost: AbortSignal.any([this.#reconnects.signal, unjudged.signal]),
    };
    const judge = (message: Delivered) =>
      this.#judgeJump(entries, leader, message).then(passDropped, () => unjudged.abort());
    const pump = new Pump(this.#deps, consumer, (message) => {
      if (this.#held !== undefined) this.#held.push(message);
      else if (message.seq > this.#last + 1) void judge(message);
      else {
        this.#accept(entries, message);
        passDropped();
      }
    });
    await pump.run(signals);
  }

  /** What was dropped, or can't be read, is no part of the ring: followers learn of it from history. */
  async #skipLost(entries: Ring<SharedEvent>, leader: Leader, newest: Sequence): Promise<void> {
    const next = this.#last + 1;
    const readable = newest < next ? undefined : await leader.readableAfter(next, []);
    const first = Math.max(await leader.firstRetained(), readable ?? 1);
    if (first > next) this.#skip(entries, first - 1);
  }

  /** Messages are missing between two that came. Erased and expired ones do not count. */
  async #judgeJump(entries: Ring<SharedEvent>, leader: Leader, first: Delivered): Promise<void> {
    const held = [first];
    this.#held = held;
    for (let message = held.shift(); message !== undefined; message = held.shift()) {
      const next = this.#last + 1;
      const isDropped = message.seq > next && (await leader.firstRetained()) > next;
      // Another run has started meanwhile, and has read further.
      if (this.#held !== held) return;
      if (isDropped) this.#skip(entries, message.seq - 1);
      this.#accept(entries, message);
    }
    this.#held = undefined;
  }

  #skip(entries: Ring<SharedEvent>, last: Sequence): void {
    this.#last = last;
    entries.clear(endOf(last));
    this.watches.disarmAll();
  }

  /** All events of a message are in place before any follower continues. */
  #accept(entries: Ring<SharedEvent>, message: Delivered): void {
    if (message.seq <= this.#last) return;
    const events = this.#deps.readMessage(message);
    this.#last = message.seq;
    // The message stays in memory until the last of its events has left the ring.
    const bytes = message.data.byteLength / events.length;
    for (const event of events) {
      const entry = new SharedEvent(message, event);
      const erasure = mayErase(entry) ? entry.decode()?.event : undefined;
      const erased = erasure && erasedBy(erasure);
      if (erased !== undefined) {
        forget(entries, erased);
        this.#deps.forget?.(erased, entry.offset);
      }
      this.watches.offer(entry.tokens, entries.push(entry, bytes));
    }
    if (events.length === 0) this.watches.wakeAll();
  }
}

/** Decides by the subject, which ends with the channel and the noun of the kind. */
function mayErase({ tokens }: SharedEvent): boolean {
  const noun = tokens.at(-1);
  return (noun === "session" || noun === "source") && tokens.at(-2) === ownChannel;
}

/** The session, or the full name of the source, that an event declares erased. */
function erasedBy({ kind, session, source }: RecordedEvent["event"]): string | undefined {
  if (kind === "session.erased") return session;
  return kind === "source.erased" ? source : undefined;
}

/** Erased events must not be served from memory. */
function forget(entries: Ring<SharedEvent>, session: string): void {
  let index = entries.indexAfter(entries.floor);
  for (let entry = entries.at(index); entry !== undefined; entry = entries.at(++index)) entry.forget(session);
}

/** Whether another pull has to follow. Throws where none would be answered, as the consumer is gone. */
function endsPull({ code, description }: Exclude<PullAnswer, { readonly type: "message" }>): boolean {
  if (code === 100) return false; // idle heartbeat
  if (code === 404 || code === 408 || (code === 409 && exceedsMaxBytes(description))) return true;
  throw new Error(`the log answered ${code} ${description}`);
}

type Pace = (typeof paces)[keyof typeof paces];

/** Pulls from a consumer, and gives what comes to `accept`. */
class Pump {
  readonly #access: StreamAccess;
  readonly #consumer: Consumer;
  readonly #accept: (message: Delivered) => void;
  readonly #end = Promise.withResolvers<void>();
  #silence: Timer;
  #pace: Pace = paces.busy;
  #answers = 0;
  #delivered = 0;
  /** How many messages the current pull may still bring. */
  #left = 0;
  #current: Disposable | undefined;

  constructor(access: StreamAccess, consumer: Consumer, accept: (message: Delivered) => void) {
    this.#access = access;
    this.#consumer = consumer;
    this.#accept = accept;
    this.#silence = startTimer(this.#suspectSilence, this.#pace.lostAfterMs);
  }

  /** Pulls until the consumer or the server is gone, which is an error, or the signal aborts. To be called once. */
  async run({ signal, lost }: { readonly signal: AbortSignal; readonly lost: AbortSignal }): Promise<void> {
    const { promise, resolve, reject } = this.#end;
    const abort = () => resolve();
    const reconnected = () => reject(new Error("reconnected"));
    signal.addEventListener("abort", abort);
    // A server that was away has forgotten the consumer, so there is no need to wait for missed heartbeats.
    lost.addEventListener("abort", reconnected);
    if (signal.aborted) resolve(); // aborted before the listener was added
    try {
      this.#pullMore();
      await promise;
    } finally {
      stopTimer(this.#silence);
      signal.removeEventListener("abort", abort);
      lost.removeEventListener("abort", reconnected);
      this.#current?.[Symbol.dispose]();
    }
  }

  #pullMore(): void {
    const hasBroughtNothing = this.#current !== undefined && this.#left === pullRequest.batch;
    this.#takePace(hasBroughtNothing ? paces.quiet : paces.busy);
    this.#current?.[Symbol.dispose]();
    this.#left = pullRequest.batch;
    const request = { ...pullRequest, idle_heartbeat: this.#pace.heartbeatMs * nanosPerMs };
    this.#current = pull(this.#access, this.#consumer, request, (answer) => {
      try {
        this.#answers++;
        this.#silence.refresh();
        this.#take(answer);
      } catch (err) {
        this.#end.reject(err);
      }
    });
  }

  #take(answer: PullAnswer): void {
    if (answer.type === "message") {
      if (answer.message.deliverySeq !== ++this.#delivered) throw new Error("a message was lost in transit");
      this.#accept(answer.message);
      if (--this.#left === 0) this.#pullMore();
      return;
    }
    if (endsPull(answer)) this.#pullMore();
  }

  #takePace(pace: Pace): void {
    if (pace === this.#pace) return;
    this.#pace = pace;
    stopTimer(this.#silence);
    this.#silence = startTimer(this.#suspectSilence, pace.lostAfterMs);
  }

  readonly #suspectSilence = (): void => {
    const before = this.#answers;
    // This process may have been held up: then what has arrived meanwhile is read after its timers, and before this.
    setImmediate(() => {
      if (this.#answers === before) this.#end.reject(new Error("the log stopped responding"));
    });
  };
}
