import { ownChannel } from "@tapedeck/shared/events/kinds";
import { DeveloperErasureStore, developerKey } from "@tapedeck/shared/log/erasures/developer-erasures";
import { type Erasure, ErasureStore, openErasures } from "@tapedeck/shared/log/erasures/erasure-store";
import { endOf, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { rangesOf } from "../journal/ranges.ts";
import { sessionErased } from "../own-facts/session-facts.ts";
import type { Store, Stores } from "../recorder-options.ts";
import { DeveloperJob, type DeveloperJobOptions } from "./developer-job.ts";
import { findIn, type HeldMessage, messagesOf, removeMessage } from "./erase-session.ts";
import { workspaceOf } from "./erasures.ts";
import { removalPace } from "./removal-pace.ts";

export type EraseJobsOptions = Omit<DeveloperJobOptions, "store"> & {
  readonly stores: Stores;
  /** ULID of this process: of several only one erases. */
  readonly ingest: string;
  /** For the audit log: once or, after a crash, twice, however often an erasure is tried. Never rejects. */
  readonly audit: (action: "session.erasure-begun" | "session.erased", erasure: Erasure) => Promise<void>;
  readonly signal: AbortSignal;
};

/** An erasure that is under way, of a session or of a developer. */
type Job = {
  readonly key: string;
  readonly about: Readonly<Record<string, string>>;
  readonly work: (signal: AbortSignal) => Promise<void>;
};

/** An erasure whose messages are counted, and the last one of them. */
type Counted = { readonly erasure: Erasure; readonly last: Sequence };

/** How often erasures are looked for that another ingest had, or that nothing was heard of. */
const lookMs = 10_000;
/** Delay where another ingest has the turn, which it may lose at any time. */
const turnMs = 1_000;
/** How often the progress is written. */
const progressMs = 500;
/** How many messages are found before they are removed: the log is not read meanwhile. */
const messagesAtOnce = 500;

/**
 * Finishes every erasure, also one that another process began, or that a kill interrupted. Sessions are removed
 * from their oldest message on, at a pace that recording does not notice.
 */
export class EraseJobs implements AsyncDisposable {
  readonly #options: EraseJobsOptions;
  readonly #erasures: ErasureStore;
  readonly #developers: DeveloperErasureStore;
  readonly #started = new Notifier();
  /** By session, or a developer's key: those that this process is at, or tries again. */
  readonly #erasing = new Map<string, Promise<void>>();
  readonly #running: Promise<void>;

  constructor(options: EraseJobsOptions) {
    this.#options = options;
    this.#erasures = new ErasureStore(options.stores.nats);
    this.#developers = new DeveloperErasureStore(options.stores.nats);
    this.#running = this.#run();
  }

  /** The signal has aborted. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { stores, signal, logger } = this.#options;
    const subscription = stores.nats.subscribe(openErasures, {
      // The progress of those that this process is at is heard as well.
      callback: (_, { subject }) => {
        if (!this.#erasing.has(subject.split(".").at(-1) ?? "")) this.#started.ring();
      },
    });
    const retry = backoff(turnMs, 30_000);
    try {
      while (!signal.aborted) {
        const started = this.#started.next();
        try {
          const isIdle = await this.#all();
          retry.reset();
          if (isIdle) await Promise.race([started, delay(lookMs, signal)]);
          else await delay(turnMs, signal);
        } catch (err) {
          if (!signal.aborted) logger.warn({ err }, "can't check for erasures; trying again");
          await delay(retry.next(), signal);
        }
      }
    } finally {
      subscription.unsubscribe();
    }
  }

  /** False: there are some, and another ingest has the turn. */
  async #all(): Promise<boolean> {
    const { stores, ingest } = this.#options;
    if ((await this.#open()).length === 0) return true;
    await using lease = await stores.leases.take("erasures", ingest);
    if (lease === undefined) return false;
    const over = new AbortController();
    const signal = AbortSignal.any([this.#options.signal, lease.lost, over.signal]);
    try {
      while (!signal.aborted) {
        const started = this.#started.next();
        // Side by side, so that none stays in the tables until another one is gone. Their pace is one.
        for (const { key, about, work } of await this.#open()) {
          if (this.#erasing.has(key)) continue;
          this.#erasing.set(
            key,
            this.#retried(() => work(signal), about, signal).finally(() => this.#erasing.delete(key)),
          );
        }
        if (this.#erasing.size === 0) return true;
        await Promise.race([started, delay(lookMs, signal), ...this.#erasing.values()]);
      }
      return true;
    } finally {
      over.abort();
      await Promise.allSettled(this.#erasing.values());
    }
  }

  async #open(): Promise<readonly Job[]> {
    const sessions = (await this.#erasures.open()).map(({ source, session }): Job => {
      const work = (signal: AbortSignal) => this.#eraseSession(session, signal);
      return { key: session, about: { source, session }, work };
    });
    const developers = (await this.#developers.open()).map(({ workspace, developer = "" }): Job => {
      const key = developerKey({ workspace, developer });
      return { key, about: { workspace, developer }, work: (signal) => this.#eraseDeveloper(key, signal) };
    });
    return [...sessions, ...developers];
  }

  /** The entry is read anew: an attempt before this one may have come far. */
  async #eraseSession(session: string, signal: AbortSignal): Promise<void> {
    const erasure = await this.#erasures.of(session);
    if (erasure?.state !== "removing") return;
    const store = await this.#options.stores.of(workspaceOf(erasure));
    await this.#erase(store, ofThisLog(erasure, store), signal);
  }

  async #eraseDeveloper(key: string, signal: AbortSignal): Promise<void> {
    const erasure = await this.#developers.of(key);
    if (erasure?.state !== "removing" || erasure.developer === undefined) return;
    const store = await this.#options.stores.of(erasure.workspace);
    await new DeveloperJob({ ...this.#options, store }, { ...erasure, developer: erasure.developer }, signal).run();
  }

  /** One that fails, because its source is being imported, holds up no other. Never rejects. */
  async #retried(work: () => Promise<void>, about: Job["about"], signal: AbortSignal): Promise<void> {
    const retry = backoff(turnMs, 30_000);
    while (!signal.aborted) {
      try {
        return await work();
      } catch (err) {
        if (signal.aborted) return;
        this.#options.logger.warn({ err, ...about }, "an erasure failed; trying again");
        await delay(retry.next(), signal);
      }
    }
  }

  async #erase(store: Store, requested: Erasure, signal: AbortSignal): Promise<void> {
    const { logger, audit } = this.#options;
    const marked = await this.#marked(store, await this.#audited(requested), signal);
    if (signal.aborted) return;
    // From here on callers hear of it, before it is known how much there is.
    await this.#erasures.advance(marked);
    const counted = await this.#counted(store, marked, signal);
    if (signal.aborted) return;
    await this.#erasures.advance(counted.erasure);
    const erasure = await this.#removed(store, counted, signal);
    if (signal.aborted) return;
    // They would push what people did out of the audit log.
    if (erasure.kind === "retention") return await this.#erasures.drop(erasure);
    await audit("session.erased", erasure);
    await this.#erasures.end(erasure);
    const { source, session, events } = erasure;
    logger.info({ source, session, events }, "a session was erased");
  }

  async #removed(store: Store, { erasure: initial, last }: Counted, signal: AbortSignal): Promise<Erasure> {
    let erasure = initial;
    let writtenAt = performance.now();
    for (let messages = await this.#next(store, erasure, last, signal); messages.length > 0; ) {
      for (const { seq, events } of messages) {
        await removalPace.step(() => removeMessage(store, seq), signal);
        if (signal.aborted) return erasure;
        erasure = { ...erasure, removedSeq: seq, removed: erasure.removed + events };
        if (performance.now() - writtenAt < progressMs) continue;
        await this.#erasures.advance(erasure);
        writtenAt = performance.now();
      }
      messages = await this.#next(store, erasure, last, signal);
    }
    return erasure;
  }

  /** Written down before anything can fail, so that no other attempt audits it again. */
  async #audited(erasure: Erasure): Promise<Erasure> {
    if (erasure.audited || erasure.kind === "retention") return erasure;
    await this.#options.audit("session.erasure-begun", erasure);
    const audited = { ...erasure, audited: true };
    await this.#erasures.advance(audited);
    return audited;
  }

  /** At the mark query forgets the session. It also carries the cursor on where the session was the source's last. */
  async #marked(store: Store, erasure: Erasure, signal: AbortSignal): Promise<Erasure> {
    if (erasure.markedSeq !== undefined) return erasure;
    const { recordFact } = this.#options;
    const { session, removedSeq, endSeq } = erasure;
    const source = erasure.source as SourceName;
    const until = endSeq === undefined ? undefined : endOf(endSeq);
    const found = await findIn({ source, session, afterOffset: endOf(removedSeq) }, { ...store, signal }, until);
    if (!found.marked && found.ownOrdinals.length > 0) {
      const ordinals = rangesOf(found.ownOrdinals).map(({ first, last }) => ({
        channel: ownChannel,
        first: BigInt(first),
        last: BigInt(last),
      }));
      await recordFact(source, session, sessionErased(session, ordinals, erasure.kind === "retention"));
    }
    // What follows a mark was imported anew.
    const lastSeq = found.marked || endSeq !== undefined ? erasure.lastSeq : found.lastSeq;
    return { ...erasure, lastSeq, markedSeq: await endSequence(store) };
  }

  /**
   * After a crash the log may have less than was written down, so what is left is counted. All that the log has of the source is
   * read for this once, because nothing says where the session's last message is.
   */
  async #counted(store: Store, erasure: Erasure, signal: AbortSignal): Promise<Counted> {
    let left = 0;
    let last = erasure.removedSeq;
    const { endSeq = erasure.lastSeq } = erasure;
    for await (const { seq, events } of this.#messages(store, erasure, endSeq, signal)) {
      left += events;
      last = seq;
    }
    const { events = left } = erasure;
    return { erasure: { ...erasure, events, removed: Math.max(0, events - left) }, last };
  }

  async #next(store: Store, erasure: Erasure, last: Sequence, signal: AbortSignal): Promise<readonly HeldMessage[]> {
    const found: HeldMessage[] = [];
    for await (const message of this.#messages(store, erasure, last, signal)) {
      if (found.push(message) === messagesAtOnce) break;
    }
    return found;
  }

  #messages(store: Store, { source, session, removedSeq }: Erasure, last: Sequence, signal: AbortSignal) {
    const place = { source: source as SourceName, session, first: removedSeq + 1, last };
    return messagesOf(place, { ...store, signal });
  }
}

/** A log that was restored since may have what was removed before, and lack the mark: it is erased there from its start on. */
function ofThisLog(erasure: Erasure, { log: { epoch } }: Store): Erasure {
  if (erasure.epoch === epoch) return erasure;
  return { ...erasure, epoch, removedSeq: 0, removed: 0, events: undefined, markedSeq: undefined, endSeq: undefined };
}

async function endSequence({ log }: Store): Promise<Sequence> {
  return sequenceOf((await log.reader.bounds()).lastOffset);
}
