import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { beyondAll, type Offset } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import { msBetween, timestampNow } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../normalize/fact.ts";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { originalOf } from "../../normalize/original.ts";
import { type ChannelStore, emptyStore, readBack } from "../frames/channel-store.ts";
import { type FreshFrame, freshFrame, freshFrames } from "../frames/fresh-frames.ts";
import { isTextFrame, type Numbered } from "../frames/numbering.ts";
import { fingerprintOf, type PendingFrame, type Redact } from "../frames/pending-frame.ts";
import type { LogHistoryReader } from "../journal/load-history.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import { lostBetween } from "../own-facts/gap-facts.ts";
import { sessionIdentified } from "../own-facts/session-facts.ts";
import type { OnFrame } from "../pushed-session.ts";
import { type ConnectionChannel, isFromFile, type UpstreamConnection } from "./connection.ts";
import type { Injections } from "./injections.ts";

export type ChannelRecorderOptions = {
  readonly journal: SourceJournal;
  readonly reader: LogHistoryReader;
  readonly source: SourceName;
  readonly normalizer: Normalizer;
  readonly injections: Injections;
  readonly signal: AbortSignal;
  /** Larger frames are recorded without their bytes. */
  readonly frameBytes: number;
  /** Seconds that text lives in the log; absent: forever. */
  readonly textTtl?: number | undefined;
  readonly onFrame: OnFrame;
};

/** Records frames of connections whose session is known. */
export class ChannelRecorder {
  readonly #options: ChannelRecorderOptions;
  readonly #readBackOnce = new Set<string>();

  constructor(options: ChannelRecorderOptions) {
    this.#options = options;
  }

  /** Gives how many events were added in total by then: at once for a frame that is live, which most are. */
  record(
    connection: UpstreamConnection,
    channel: ConnectionChannel,
    frames: readonly PendingFrame[],
    redact: Redact,
  ): Promise<number> | number {
    const { store, sorter } = channel;
    const [frame] = frames;
    const isPlain = frames.length === 1 && frame !== undefined && !frame.isLarge && sorter.state === "live";
    if (!isPlain || store === undefined || store.known.size > 0) {
      return this.#recordAll(connection, channel, frames, redact);
    }
    const { journal, normalizer } = this.#options;
    const { name } = channel.normalizer;
    const fresh = freshFrame(store, frame, { normalizer, channel: name, redact });
    journal.numbers.repeatEnded(name);
    const fingerprint = this.#identified(connection, channel, frames, redact);
    return journal.publish([...fingerprint, ...this.#number(connection, channel, store, fresh)]);
  }

  async #recordAll(
    connection: UpstreamConnection,
    channel: ConnectionChannel,
    frames: readonly PendingFrame[],
    redact: Redact,
  ): Promise<number> {
    const { journal, normalizer, onFrame } = this.#options;
    const { name } = channel.normalizer;
    const yieldIfDue = yieldToEventLoop();
    // Masking takes long for a large piece. From here on each frame knows its masked form.
    for (const frame of frames) {
      await frame.prepare(redact);
      frame.masked(redact);
      await yieldIfDue();
    }
    if (channel.store === undefined) {
      channel.store = await this.#openStore(connection, channel);
      this.#begin(connection, channel, channel.store, frames, redact);
    }
    const { store } = channel;
    const fresh = await freshFrames(store, frames, { normalizer, channel: name, redact });
    for (let i = fresh.length; i < frames.length; i++) onFrame(name, "repeated");
    const isLive = channel.sorter.state === "live";
    for (const [i, one] of fresh.entries()) {
      // Settles only with the last message, because after a crash before it the rest must be sorted again.
      if (isLive && i === fresh.length - 1) journal.numbers.repeatEnded(name);
      // Published with the first frame, so that no frame is without its channel's fingerprint.
      const firsts = i > 0 ? [] : fresh.map(({ frame }) => frame);
      const fingerprint = this.#identified(connection, channel, firsts, redact);
      journal.publish([...fingerprint, ...this.#number(connection, channel, store, one)]);
      await journal.writer.room();
      await yieldIfDue();
    }
    if (isLive) journal.numbers.repeatEnded(name);
    return fresh.length === 0 ? 0 : journal.writer.appended;
  }

  async #openStore(connection: UpstreamConnection, { normalizer: channel }: ConnectionChannel): Promise<ChannelStore> {
    const { journal, reader, source, normalizer, injections, signal } = this.#options;
    const { history, numbers, writer } = journal;
    const session = history.session;
    const isStandIn = connection.standIn === channel.name;
    const frameReader = isStandIn && channel.without ? channel.without.reader() : channel.reader();
    if (session === undefined || numbers.ordinal(channel.name) === 0) return emptyStore(frameReader);
    // The connection may also repeat frames that are still on their way to the log.
    await writer.reached(writer.appended);
    const isFirst = !this.#readBackOnce.has(channel.name);
    this.#readBackOnce.add(channel.name);
    const connectedOffset = connection.resumedOffset ?? beyondAll;
    // This recorder has already removed what it recorded itself from the expected injections.
    const onRecorded = isFirst ? (event: Event, offset: Offset) => injections.recorded(event, offset) : () => {};
    const pieceOf = (bytes: Uint8Array) => normalizer.pieceOf?.(channel.name, bytes);
    const of = { reader, source, channel, frameReader, session, connectedOffset, isFromFile: isFromFile(connection) };
    return readBack({ ...of, signal, onFrame: onRecorded, pieceOf });
  }

  /** Records what must precede the first frames of a channel on this connection. */
  #begin(
    connection: UpstreamConnection,
    channel: ConnectionChannel,
    store: ChannelStore,
    first: readonly PendingFrame[],
    redact: Redact,
  ): void {
    const { journal } = this.#options;
    const { numbers, history } = journal;
    const at = first[0]?.at ?? timestampNow();
    const { name, replays } = channel.normalizer;
    if (store.unfinished !== undefined) {
      const { event, part, facts } = store.unfinished;
      const { injected, redacted, observed_at: observedAt = timestampNow() } = event;
      journal.publish(
        facts.map((fact, i) => numbers.laterPart(name, part + i, fact, { observedAt, injected, redacted })),
      );
    }
    const { lastEarlier, hasFrames } = store;
    if (replays || !connection.rejoined || hasFrames || history.hasGap(name, at)) return;
    // Lines before the first one may not have been repeated.
    const isLast = (frame: PendingFrame) =>
      [...frame.rawHashes, frame.masked(redact).sha].some((hash) => lastEarlier?.includes(hash));
    if (lastEarlier !== undefined && first.some(isLast)) return;
    journal.publish([journal.own(connection.session, lostBetween(name), at)]);
  }

  /** The text would have expired by now, so the log no longer knows whether it had it. */
  #isForgotten({ rejoined, resumedOffset }: UpstreamConnection, frame: PendingFrame, facts: readonly Fact[]): boolean {
    const { textTtl } = this.#options;
    if (textTtl === undefined || !(rejoined || resumedOffset !== undefined) || !isTextFrame(facts)) return false;
    return frame.timestamp !== undefined && msBetween(frame.timestamp, timestampNow()) >= textTtl * 1_000;
  }

  #number(
    connection: UpstreamConnection,
    channel: ConnectionChannel,
    store: ChannelStore,
    { frame, masked: { bytes, redacted } }: FreshFrame,
  ): readonly Numbered[] {
    const { journal, injections, frameBytes, onFrame } = this.#options;
    const { name, messageType } = channel.normalizer;
    const injected = injections.take(name, bytes);
    const facts = factsIn(store, bytes, injected);
    if (this.#isForgotten(connection, frame, facts)) {
      onFrame(name, "repeated");
      return [];
    }
    onFrame(name, "recorded");
    if (facts[0].kind === "upstream.unreadable") onFrame(name, "unreadable");
    if (bytes.byteLength > frameBytes) onFrame(name, "oversize");
    const original = originalOf(messageType, bytes, frameBytes, redacted > 0 ? frame.identity : undefined);
    return journal.numbers.frame(name, facts, original, { observedAt: frame.at, redacted, injected });
  }

  /** The channel's fingerprint among these frames, unless the session has one. */
  #identified(
    { session }: UpstreamConnection,
    { normalizer: { name } }: ConnectionChannel,
    frames: readonly PendingFrame[],
    redact: Redact,
  ): readonly Numbered[] {
    const { journal } = this.#options;
    const [first] = frames;
    if (first === undefined || journal.history.session?.fingerprints.has(name)) return [];
    const fingerprint = fingerprintOf(frames, redact);
    return fingerprint === undefined ? [] : [journal.own(session, sessionIdentified(name, fingerprint), first.at)];
  }
}

/** Readers are total. If one fails nevertheless, its frame is unreadable and recording continues. */
function factsIn({ reader }: ChannelStore, bytes: Uint8Array, injected: boolean): readonly [Fact, ...Fact[]] {
  try {
    return reader.read(bytes, injected);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return [{ kind: "upstream.unreadable", summary: `${bytes.byteLength} bytes that can't be read: ${reason}` }];
  }
}
