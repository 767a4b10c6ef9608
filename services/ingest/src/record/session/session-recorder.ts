import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type { Identified, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../normalize/fact.ts";
import { channelNames } from "../../normalize/normalizer.ts";
import { shaOf } from "../../normalize/original.ts";
import { openSourceJournal, type SourceJournal } from "../journal/source-journal.ts";
import type { PushedSession, SessionRecorderOptions } from "../pushed-session.ts";
import { isWaiting, runPending, standInOf, type UpstreamConnection, whenDecided } from "./connection.ts";
import type { Injections } from "./injections.ts";
import { recordLabels } from "./record-labels.ts";
import { type SessionParts, sessionParts } from "./session-parts.ts";

type What = NonNullable<Item["what"]>;

/** Waits while the log is unavailable. Rejects only when the signal aborts. */
export async function openSessionRecorder(options: SessionRecorderOptions): Promise<SessionRecorder> {
  const { log, source, normalizer, hello, listener = {}, textTtl } = options;
  const closing = new AbortController();
  const signal = AbortSignal.any([options.signal, closing.signal]);
  let recorder: SessionRecorder | undefined;
  const journal = await openSourceJournal({
    log,
    source,
    hello,
    signal,
    allSessions: normalizer.observing !== undefined,
    life: textTtl === undefined ? undefined : { textTtl, channels: channelNames(normalizer) },
    onAcknowledged(events) {
      listener.published?.(events);
      recorder?.reportCommitted();
    },
    onPublishFailure: (published) => listener.onPublishFailure?.(published),
  });
  recorder = new SessionRecorder({ ...options, signal }, journal, closing);
  return recorder;
}

/**
 * Records what one tap pushes of one source: finds its session, drops what the log already has, numbers and publishes the
 * rest. Everything that it knows at the start comes from the log, so it continues where a killed recorder stopped.
 */
export class SessionRecorder implements PushedSession {
  readonly kind = "live";

  readonly #options: SessionRecorderOptions;
  readonly #journal: SourceJournal;
  readonly #closing: AbortController;
  readonly #parts: SessionParts;
  readonly #yieldIfDue = yieldToEventLoop();
  #lastIndex = 0n;
  #reportedSession = "";

  constructor(options: SessionRecorderOptions, journal: SourceJournal, closing: AbortController) {
    this.#options = options;
    this.#journal = journal;
    this.#closing = closing;
    this.#parts = sessionParts(options, journal, (connection) => this.#reportSession(connection));
  }

  get injections(): Injections {
    return this.#parts.injections;
  }

  get waiting(): boolean {
    const { current } = this.#parts.connections;
    return current !== undefined && isWaiting(current);
  }

  get connected(): boolean {
    return this.#parts.connections.areUp;
  }

  get ended(): Promise<Error> {
    return this.#journal.writer.ended;
  }

  /** Called with each event that is on its way to the log. */
  get listeners(): Set<(event: Event) => void> {
    return this.#journal.listeners;
  }

  committed(): bigint {
    return this.#parts.watermark.upTo(this.#journal.writer.acknowledged);
  }

  reportCommitted(): void {
    this.#options.listener?.committed?.(this.committed());
  }

  drained(): Promise<void> {
    const { writer } = this.#journal;
    return writer.reached(writer.appended);
  }

  async take(...items: readonly Item[]): Promise<void> {
    const { writer } = this.#journal;
    for (const item of items) {
      // Most items are frames that are recorded at once. Waiting for each of them would cost more than that.
      const pending = this.#takeOne(item) ?? (writer.hasRoom ? this.#yieldIfDue() : writer.room());
      if (pending === undefined) continue;
      await pending;
      this.#reportSession();
      if (!writer.hasRoom) await writer.room();
      if (this.#options.signal.aborted) return;
    }
    this.#reportSession();
    this.reportCommitted();
    if (!writer.hasRoom) await writer.room();
  }

  async advance(at: Timestamp): Promise<void> {
    await this.#advanceHeld(at);
    this.#reportSession();
  }

  /**
   * Records a fact that Tapedeck itself states, about the session that is recorded unless another is named. Resolves when
   * it is in the log.
   */
  recordFact(fact: Fact, session: string = this.#parts.connections.current?.session ?? ""): Promise<void> {
    const at = timestampNow();
    const journal = this.#journal;
    const introduction = journal.introduction(at);
    return journal.writer.reached(journal.publish([...introduction, journal.own(session, fact, at)]));
  }

  /** Records the upstream's answer as the state where it differs from what the events lead to; see observed.proto. */
  adopt(observed: Observed): void {
    this.#parts.states.adopt(this.#parts.connections.current, observed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#journal[Symbol.asyncDispose]();
  }

  /** Undefined: the item is done. */
  #takeOne(item: Item): Promise<void> | undefined {
    const { index, connection } = item;
    const at = item.at ?? this.#journal.history.lastAt ?? timestampNow();
    if (index < this.#lastIndex) throw wrong("index", `item ${index} came after ${this.#lastIndex}`);
    if (connection === "" && item.what?.$case !== "dropped") {
      throw wrong("connection", `item ${index} has no connection`);
    }
    this.#lastIndex = index;
    this.#parts.watermark.began(index);
    const advanced = this.#advanceHeld(at);
    return advanced === undefined ? this.#handle(item, at) : advanced.then(() => this.#handle(item, at));
  }

  /** Undefined: nothing waits for time to pass. */
  #advanceHeld(at: Timestamp): Promise<void> | undefined {
    const { current } = this.#parts.connections;
    return current === undefined || !isWaiting(current) ? undefined : this.#parts.frames.advance(current, at);
  }

  #reportSession({ session = "" }: Partial<UpstreamConnection> = this.#parts.connections.current ?? {}): void {
    if (session === "" || session === this.#reportedSession) return;
    this.#reportedSession = session;
    this.#options.listener?.session?.(session);
  }

  /** Undefined: the item is done. */
  #handle({ index, connection: id, what }: Item, at: Timestamp): Promise<void> | undefined {
    const { connections, frames, observations, watermark } = this.#parts;
    // Otherwise "unchanged" would be concluded about an observation that never came.
    if (what?.$case === "dropped") observations?.connected();
    if (what === undefined || isMemoryLost(what) || this.#journal.history.isOver(id)) {
      watermark.finished(index, 0);
      return undefined;
    }
    const { current } = connections;
    const isOnCurrent = current?.id === id && !connections.isLost(id);
    if (isOnCurrent && what.$case === "frame" && !observations?.has(what.value.channel)) {
      return frames.take(current, what.value, at, index);
    }
    return this.#handleOther(index, id, what, at);
  }

  async #handleOther(index: bigint, id: string, what: What, at: Timestamp): Promise<void> {
    const { connections, sessions, watermark, gaps } = this.#parts;
    const isClosed = what.$case === "closed";
    if (connections.isLost(id)) {
      const ended = isClosed ? this.#journal.publish(sessions.end(id, what.value, at)) : 0;
      return watermark.finished(index, ended);
    }
    if (id !== "" && connections.current?.id !== id && !connections.resume(id)) {
      // The item reports only the end of this connection, and a later connection, or none, was recorded.
      if (isClosed) return watermark.finished(index, 0);
      const { address, channels } = what.$case === "dialled" ? what.value : { address: "", channels: [] };
      const standIn = standInOf(this.#options.normalizer, { address, channels });
      await connections.begin(id, { address, standIn }, at);
    }
    const { current } = connections;
    if (current !== undefined) return this.#handleOn(current, index, what, at);
    watermark.finished(index, what.$case === "dropped" ? gaps.dropped(undefined, what.value, at) : 0);
  }

  async #handleOn(connection: UpstreamConnection, index: bigint, what: What, at: Timestamp): Promise<void> {
    const { watermark, frames, observations, connections, sessions, gaps, states } = this.#parts;
    const done = (events: number) => watermark.finished(index, events);
    switch (what.$case) {
      case "dialled":
        return done(this.#journal.writer.appended);
      case "identified":
        return done(await this.#identify(connection, what.value, at));
      case "frame":
        if (!observations?.has(what.value.channel)) return frames.take(connection, what.value, at, index);
        return observations.take(connection, what.value, at, index, sessions.redact());
      case "channel_ended":
        await frames.release(connection, what.value.channel, at);
        return whenDecided(connection, () => done(gaps.ended(connection, what.value, at)));
      case "channel_filled":
        await frames.release(connection, what.value.channel, at);
        return whenDecided(connection, () => done(gaps.filled(connection, what.value.channel, at)));
      case "described":
        return whenDecided(connection, () => {
          done(states.described(connection, what.value, at, index));
          states.report(connection, what.value, at);
        });
      case "labelled":
        return whenDecided(connection, () => done(recordLabels(this.#journal, connection, what.value, at)));
      case "dropped":
        return whenDecided(connection, () => done(gaps.dropped(connections.current, what.value, at)));
      case "closed": {
        const events = await connections.close(connection, what.value, at);
        this.#reportSession(connection);
        return done(events);
      }
    }
  }

  /** The upstream identifies the session itself. */
  async #identify(connection: UpstreamConnection, identified: Identified, at: Timestamp): Promise<number> {
    if (connection.session !== "") return 0;
    const { history, writer } = this.#journal;
    const sha = shaOf(Buffer.from(identified.identity));
    const known = history.sessions.find(({ fingerprints }) => fingerprints.get("identity") === sha);
    if (known === undefined) this.#parts.sessions.begin(connection, at, { at, sha, version: identified.version });
    else await this.#parts.sessions.rejoin(connection, known, at);
    this.#parts.observations?.connected();
    runPending(connection);
    return writer.appended;
  }
}

function wrong(field: string, message: string): TapedeckError {
  return new TapedeckError("invalid_argument", message, { field });
}

/** A killed tap lost an unknown amount from memory. The next connection repeats it. */
function isMemoryLost(what: What): boolean {
  return what.$case === "dropped" && what.value.channel === "" && what.value.count === 0n;
}
