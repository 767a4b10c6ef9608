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
// 5. A log to which nothing comes costs nothing: after a pull without a message the tail sleeps until one is published.
// 6. Messages gather while every follower is patient: they wake the process together. The first impatient one ends that.
// Why a server that is cut off is left: docs/decisions/0040-a-server-that-is-cut-off.md.
import { ownChannel } from "../../events/kinds.ts";
import { backoff, delay } from "../../sync/delay.ts";
import { startTimer, stopTimer, type Timer } from "../../sync/timers.ts";
import { bytesInMemory } from "../batch/channel-events.ts";
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
  type PullRequest,
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
  readonly gathering?: Gathering | undefined;
  /** How often a tail that sleeps checks the log, in case it did not hear the message that should have woken it. */
  readonly checkMs?: number;
  /** Called when a session was erased, before those who follow learn of it. */
  readonly forget?: (session: string, erasedAt: Offset) => void;
};

const defaultLimits: RingLimits = { entries: 4_096, bytes: 32 * 1024 * 1024 };
/** How long the first message waits for others while every follower is patient. */
const gatherMs = 100;
const heartbeatMs = 500;
const lostAfterMs = 1_500;
/** A server alone loses no message without losing the connection. Between the servers of a cluster one may be lost. */
const checksMs = { alone: 300_000, inCluster: 30_000 } as const;
const nanosPerMs = 1_000_000;
const patience = { expires: 30_000 * nanosPerMs, idle_heartbeat: heartbeatMs * nanosPerMs };
/** The bytes keep the server from taking us for a slow consumer when large messages come in a row; any one fits. */
const many = { batch: 1_000, max_bytes: 16 * 1024 * 1024 };
const asTheyCome = { ...many, ...patience };
const theFirst = { batch: 1, ...patience };
const whatIsThere = { ...many, no_wait: true };

/**
 * Lets messages gather for followers that may wait, which are woken once for all of them: waking costs as much as several messages.
 * Default: for 100 ms while every follower is patient.
 */
export type Gathering = {
  /** How long the first message waits for others; called once for each. */
  readonly waitMs: () => number;
  /** While somebody waits for what comes, nothing gathers. */
  readonly isAwaited: () => boolean;
  /** Calls `wake`, and no other listener, whenever somebody begins to wait. */
  readonly onAwaited: (wake: () => void) => void;
};

export function openTail(deps: TailDeps): Tail {
  return new LogTail(deps);
}

class LogTail implements Tail {
  readonly #deps: TailDeps;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  readonly watches = new Watches();
  readonly #gathering: PumpDeps["gathering"];
  #entries: Ring<SharedEvent> | undefined;
  /** The last message that was read. */
  #last: Sequence = 0;
  /** What was delivered behind a jump, until it is known what the jump is. */
  #held: Delivered[] | undefined;
  #failed: Error | undefined;
  #reconnects = new AbortController();
  /** What the stream stores. */
  #subjects: readonly string[] = [];

  constructor(deps: TailDeps) {
    this.#deps = deps;
    this.#gathering =
      deps.gathering === undefined ? gatheringOf(this.watches) : { ...deps.gathering, gathers: () => true };
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
        await this.#sleep();
        continue;
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

  /** Follows the log until nothing has come for a while. */
  async #readOn(): Promise<void> {
    const { jsm, streamName, epoch, limits = defaultLimits } = this.#deps;
    const info = await infoOfLeader(jsm, streamName);
    const logEnd = info.state.last_seq;
    if (epochOf(info) !== epoch || logEnd < this.#last) throw new LogReplacedError(epoch);
    this.#subjects = info.config.subjects;
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
    const pump = new Pump({ ...this.#deps, gathering: this.#gathering }, consumer, (message) => {
      if (this.#held !== undefined) this.#held.push(message);
      else if (message.seq > this.#last + 1) void judge(message);
      else {
        this.#accept(entries, message);
        passDropped();
      }
    });
    await pump.run(signals);
  }

  /** Until something may have been written after what was read last. */
  async #sleep(): Promise<void> {
    const { nc, jsm, streamName, epoch, warn } = this.#deps;
    const { checkMs = nc.info?.cluster === undefined ? checksMs.alone : checksMs.inCluster } = this.#deps;
    const written = new AbortController();
    const heard = this.#subjects.map((subject) =>
      nc.subscribe(subject, {
        max: 1,
        callback: (err) => {
          if (err) warn("a quiet log can't be watched: give this user of NATS its current permissions", { err });
          written.abort();
        },
      }),
    );
    try {
      while (!written.signal.aborted && !this.#closing.signal.aborted) {
        const info = await infoOfLeader(jsm, streamName);
        if (epochOf(info) !== epoch || info.state.last_seq !== this.#last) return;
        const wakes = [written.signal, this.#reconnects.signal, this.#closing.signal];
        // All check within the same second: a check costs less than waking the process does.
        await delay(checkMs - (Date.now() % checkMs) + 1_000 * Math.random(), AbortSignal.any(wakes));
      }
    } finally {
      if (!nc.isClosed()) for (const one of heard) one.unsubscribe();
    }
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
    const bytes = bytesInMemory(message.data) / events.length;
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

/** Messages gather while every follower is patient. */
function gatheringOf(watches: Watches): PumpDeps["gathering"] {
  return {
    gathers: () => !watches.isAwaited,
    waitMs: () => gatherMs,
    isAwaited: () => watches.isAwaited,
    onAwaited: (wake) => watches.onAwaited(wake),
  };
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

type PumpDeps = StreamAccess & {
  /** `gathers`: whether the messages of the next pull do. */
  readonly gathering: Gathering & { readonly gathers: () => boolean };
};

/** Pulls from a consumer, and gives what comes to `accept`. */
class Pump {
  readonly #deps: PumpDeps;
  readonly #consumer: Consumer;
  readonly #accept: (message: Delivered) => void;
  readonly #end = Promise.withResolvers<void>();
  readonly #silence: Timer;
  #answers = 0;
  #delivered = 0;
  #request: PullRequest = asTheyCome;
  /** How many messages the current pull may still bring. */
  #left = 0;
  #current: Disposable | undefined;
  /** What gathers. */
  #gathered: Delivered[] = [];
  #gathering: Timer | undefined;

  constructor(deps: PumpDeps, consumer: Consumer, accept: (message: Delivered) => void) {
    this.#deps = deps;
    this.#consumer = consumer;
    this.#accept = accept;
    this.#silence = startTimer(this.#suspectSilence, lostAfterMs);
    deps.gathering.onAwaited(this.#pullRest);
  }

  /**
   * Pulls until a pull has brought nothing, the consumer or the server is gone, which is an error, or the signal aborts. To be
   * called once.
   */
  async run({ signal, lost }: { readonly signal: AbortSignal; readonly lost: AbortSignal }): Promise<void> {
    const { promise, resolve, reject } = this.#end;
    const abort = () => resolve();
    const reconnected = () => reject(new Error("reconnected"));
    signal.addEventListener("abort", abort);
    // A server that was away has forgotten the consumer, so there is no need to wait for missed heartbeats.
    lost.addEventListener("abort", reconnected);
    if (signal.aborted) resolve(); // aborted before the listener was added
    try {
      this.#pullNew();
      await promise;
    } finally {
      stopTimer(this.#silence);
      stopTimer(this.#gathering);
      this.#gathered = [];
      signal.removeEventListener("abort", abort);
      lost.removeEventListener("abort", reconnected);
      this.#current?.[Symbol.dispose]();
    }
  }

  /** More is there than a pull may bring. */
  #pullOn(): void {
    if (this.#request === whatIsThere) {
      this.#acceptGathered();
      this.#pull(whatIsThere);
    } else this.#pullNew();
  }

  #pullNew(): void {
    this.#acceptGathered();
    this.#pull(this.#deps.gathering.gathers() ? theFirst : asTheyCome);
  }

  #pull(request: PullRequest): void {
    this.#current?.[Symbol.dispose]();
    this.#request = request;
    this.#left = request.batch;
    this.#silence.refresh();
    this.#current = pull(this.#deps, this.#consumer, request, (answer) => {
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
      const { message } = answer;
      if (message.deliverySeq !== ++this.#delivered) throw new Error("a message was lost in transit");
      this.#left--;
      if (this.#request === theFirst) this.#gather(message);
      else if (this.#request === whatIsThere) this.#gathered.push(message);
      else this.#accept(message);
      if (this.#left === 0 && this.#request !== theFirst) this.#pullOn();
      return;
    }
    if (!endsPull(answer)) return;
    // With 409 more is pending.
    if (answer.code === 409) this.#pullOn();
    else if (this.#request === whatIsThere || this.#left < this.#request.batch) this.#pullNew();
    else this.#end.resolve();
  }

  #gather(message: Delivered): void {
    const { waitMs, isAwaited } = this.#deps.gathering;
    this.#gathered.push(message);
    if (isAwaited()) this.#pullRest();
    else this.#gathering = startTimer(this.#pullRest, waitMs());
  }

  /** The first one has waited long enough, or somebody waits for it. */
  readonly #pullRest = (): void => {
    if (!this.#isGathering) return;
    stopTimer(this.#gathering);
    this.#pull(whatIsThere);
  };

  get #isGathering(): boolean {
    return this.#request === theFirst && this.#gathered.length > 0;
  }

  /** In one turn, so that a follower that is woken finds all of it. */
  #acceptGathered(): void {
    const gathered = this.#gathered;
    this.#gathered = [];
    for (const message of gathered) this.#accept(message);
  }

  readonly #suspectSilence = (): void => {
    // Nothing is asked for while others gather.
    if (this.#isGathering) return;
    const before = this.#answers;
    // This process may have been held up: then what has arrived meanwhile is read after its timers, and before this.
    setImmediate(() => {
      if (this.#answers === before) this.#end.reject(new Error("the log stopped responding"));
    });
  };
}
