import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { SourceName } from "@tapedeck/shared/source";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { msBetween, timestampNow } from "@tapedeck/shared/time/timestamp";
import type {
  ObservationOutcome,
  Observed,
  Observing,
  Watcher,
  YieldPoint,
} from "../../normalize/inventory/observing.ts";
import { isLarge } from "../../normalize/mask-thread/thread-masks.ts";
import { originalOf } from "../../normalize/original.ts";
import { keyedHash } from "../frames/identity.ts";
import { isTextFrame } from "../frames/numbering.ts";
import type { Redact } from "../frames/pending-frame.ts";
import type { AckWatermark } from "../journal/ack-watermark.ts";
import type { KnownSession } from "../journal/known-sessions.ts";
import type { LogHistoryReader } from "../journal/load-history.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import { sessionGap } from "../own-facts/gap-facts.ts";
import type { OnFrame } from "../pushed-session.ts";
import { assemble, type FramePiece, type UpstreamConnection } from "./connection.ts";
import { rememberedEvents } from "./observation-memory.ts";

export type ObservationRecorderOptions = {
  readonly journal: SourceJournal;
  readonly watermark: AckWatermark;
  readonly reader: LogHistoryReader;
  readonly source: SourceName;
  readonly observing: Observing;
  readonly settings: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly frameBytes: number;
  /** Seconds that text lives in the log; absent: forever. */
  readonly textTtl?: number | undefined;
  /** See Original.identity in event.proto. */
  readonly identityKey?: Uint8Array | undefined;
  readonly onFrame: OnFrame;
  /** Called with each observation; the result is called when everything that it reports is in the log. */
  readonly onObserved?: ((channel: string, observation: Uint8Array, at: Timestamp) => () => void) | undefined;
  /** Ends the session and begins another, to which the connection then belongs. */
  readonly onAnotherSession: (connection: UpstreamConnection, at: Timestamp) => void;
};

type WholeObservation = {
  readonly bytes: Uint8Array;
  readonly at: Timestamp;
  /** Index of the tap's item that completed it. */
  readonly index: bigint;
};

type Recordable = Exclude<ObservationOutcome, { what: "another session" }>;
type Gap = Extract<ObservationOutcome, { what: "gap" }>;

type OpenWatcher = {
  readonly session: string;
  readonly watcher: Watcher<Observed>;
  readonly mask: Observing["mask"];
};

/**
 * Records what is concluded from observations of an upstream that has no event stream. What a watcher remembers is in the
 * log.
 */
export class ObservationRecorder {
  readonly #options: ObservationRecorderOptions;
  #open: OpenWatcher | undefined;
  /** The mask for the observation being read, if another thread has masked it. */
  #maskedInThread: Observing["mask"] | undefined;
  /** How observing begins. The watcher is notified before it gets the next observation. */
  #begins: { readonly nobodyObserved: boolean } | undefined;

  constructor(options: ObservationRecorderOptions) {
    this.#options = options;
  }

  /** The tap has a new connection to the upstream, or dropped observations: it was not observed since the last one. */
  connected(): void {
    this.#begins = { nobodyObserved: true };
  }

  has(channel: string): boolean {
    return this.#options.observing.channels.includes(channel);
  }

  /** @throws TapedeckError invalid_argument for an observation on a connection that has not been identified */
  async take(
    connection: UpstreamConnection,
    { channel, bytes, more }: FramePiece,
    at: Timestamp,
    index: bigint,
    redact: Redact,
  ): Promise<void> {
    const { observationPieces, session } = connection;
    if (session === "") {
      const message = `an observation of ${channel} came before identified`;
      throw new TapedeckError("invalid_argument", message, { field: "channel" });
    }
    const pieces = observationPieces.get(channel) ?? { partial: undefined };
    observationPieces.set(channel, pieces);
    const whole = assemble(pieces, index, bytes, more);
    if (whole === undefined) return;
    const events = await this.#record(connection, channel, { bytes: whole.bytes, at, index }, redact);
    for (const one of whole.indexes) this.#options.watermark.finished(one, events);
  }

  /** Resolves with how many events were added in total once all outcomes of this observation are in the log. */
  async #record(
    connection: UpstreamConnection,
    channel: string,
    observation: WholeObservation,
    redact: Redact,
  ): Promise<number> {
    const { journal, onFrame, onAnotherSession } = this.#options;
    const { bytes, at, index } = observation;
    const { session } = journal.history;
    if (session === undefined) return 0;
    const open = await this.#watcherOf(session, redact);
    this.#notifyBegin(open.watcher);
    // The tap has pushed it before. The last one that was recorded is taken again: only a part of its events may be in the log.
    if (index < journal.numbers.lastItem(channel)) {
      onFrame(channel, "repeated");
      return 0;
    }
    let events = 0;
    const yieldIfDue = yieldToEventLoop();
    this.#maskedInThread = redact === "on" && isLarge(bytes) ? await this.#maskInThread(channel, bytes) : undefined;
    for (const outcome of outcomesOf(open, channel, bytes, at)) {
      if (outcome.what === "yield") {
        await yieldIfDue();
        continue;
      }
      if (outcome.what === "another session") {
        onAnotherSession(connection, at);
        return this.#record(connection, channel, observation, redact);
      }
      if (this.#isForgotten(connection, outcome)) onFrame(channel, "repeated");
      else events = this.#publish(channel, index, outcome, session.id);
      await journal.writer.room();
      await yieldIfDue();
    }
    this.#maskedInThread = undefined;
    this.#reportObserved(channel, observation);
    return events;
  }

  #reportObserved(channel: string, { bytes, at }: WholeObservation): void {
    const { journal, onObserved } = this.#options;
    if (onObserved === undefined) return;
    // Observations come also while the log is unavailable. Their bytes are not held until it is back.
    const recorded = onObserved(channel, bytes, at);
    journal.writer.reached(journal.writer.appended).then(
      recorded,
      () => {}, // writing has ended, which is reported elsewhere
    );
  }

  #notifyBegin(watcher: Watcher<Observed>): void {
    if (this.#begins?.nobodyObserved === false && watcher.restarted !== undefined) watcher.restarted();
    else if (this.#begins !== undefined) watcher.connected();
    this.#begins = undefined;
  }

  async #watcherOf(session: KnownSession, redact: Redact): Promise<OpenWatcher> {
    if (this.#open?.session === session.id) return this.#open;
    const { observing, journal, reader, source, settings, signal, frameBytes, textTtl, identityKey } = this.#options;
    const mask: Observing["mask"] =
      redact === "on"
        ? (type, bytes) => (this.#maskedInThread ?? observing.mask)(type, bytes)
        : (_, bytes) => ({ bytes, redacted: 0 });
    const watcher = observing.watch({
      mask,
      settings,
      frameBytes,
      textTtl,
      identityOf: identityKey && ((bytes) => keyedHash(identityKey, bytes)),
      ...(redact === "on" && observing.maskAfter && { maskAfter: observing.maskAfter }),
    });
    // The watcher also remembers what is still on its way to the log.
    await journal.writer.reached(journal.writer.appended);
    const yieldIfDue = yieldToEventLoop();
    for (const channel of observing.channels) {
      for await (const event of rememberedEvents({ reader, source, channel, session, signal })) {
        watcher.resume(event);
        await yieldIfDue();
      }
    }
    signal.throwIfAborted();
    this.#begins ??= { nobodyObserved: false };
    this.#open = { session: session.id, watcher, mask };
    return this.#open;
  }

  /** The text would have expired by now, so the log, and with it the watcher, no longer knows whether it had it. */
  #isForgotten({ rejoined, resumedOffset }: UpstreamConnection, outcome: Recordable): boolean {
    const { textTtl } = this.#options;
    if (textTtl === undefined || outcome.what === "gap" || !(rejoined || resumedOffset !== undefined)) return false;
    const { occurredAt } = outcome.facts[0];
    return (
      occurredAt !== undefined && isTextFrame(outcome.facts) && msBetween(occurredAt, timestampNow()) >= textTtl * 1_000
    );
  }

  #publish(channel: string, index: bigint, outcome: Recordable, session: string): number {
    if (outcome.what === "gap") return this.#publishGap(channel, outcome, session);
    const { journal, frameBytes, onFrame } = this.#options;
    const { original, facts, observedAt, isSingleItem } = outcome;
    const bytes = original?.bytes ?? Buffer.alloc(0);
    if (bytes.byteLength > frameBytes) onFrame(channel, "oversize");
    onFrame(channel, facts[0].kind === "upstream.unreadable" ? "unreadable" : "recorded");
    const stored = original && originalOf(original.type, bytes, frameBytes, original.identity);
    const observed = {
      observedAt,
      redacted: original?.redacted ?? 0,
      ...(isSingleItem && { singleItem: true }),
    };
    journal.numbers.took(channel, index);
    return journal.publish(journal.numbers.frame(channel, facts, stored, observed));
  }

  /** Gaps are events of Tapedeck's own, which no watcher remembers. */
  #publishGap(channel: string, { reason, output, until, after }: Gap, session: string): number {
    const { journal } = this.#options;
    const fact = sessionGap(channel, reason, output === undefined ? {} : { output });
    const { detail } = fact;
    const isRecorded = detail?.$case === "gap" && journal.history.hasReportedGap(session, detail.value, until);
    return isRecorded ? journal.writer.appended : journal.publish([journal.own(session, fact, until, after)]);
  }

  /** Undefined if another thread can't mask it. This thread masks it then. */
  async #maskInThread(channel: string, observation: Uint8Array): Promise<Observing["mask"] | undefined> {
    try {
      return await this.#options.observing.maskInThread?.(channel, observation);
    } catch {
      return undefined;
    }
  }
}

/** Watchers are total. If one fails nevertheless, the observation is unreadable and recording continues. */
function* outcomesOf(
  { watcher, mask }: OpenWatcher,
  channel: string,
  bytes: Uint8Array,
  at: Timestamp,
): Generator<ObservationOutcome | YieldPoint, void> {
  try {
    yield* watcher.observe(channel, Observation.decode(bytes), at);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const summary = `${bytes.byteLength} bytes that can't be read: ${reason}`;
    const original = { type: observationType, ...mask(observationType, bytes) };
    yield { what: "frame", original, facts: [{ kind: "upstream.unreadable", summary }], observedAt: at };
  }
}

const observationType = "tapedeck.v1.Observation";
