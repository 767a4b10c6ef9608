import type { SourceName } from "@tapedeck/shared/source";
import { breather } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Moment } from "@tapedeck/shared/time/moment";
import { momentNow, msBetween } from "@tapedeck/shared/time/moment";
import type { Fact } from "../../normalize/fact.ts";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { type ChannelStore, emptyStore, readBack } from "../frames/channel-store.ts";
import { freshFrames } from "../frames/fresh-frames.ts";
import { isText, type Numbered } from "../frames/numbering.ts";
import { originalOf } from "../frames/original.ts";
import type { LogPast } from "../journal/source-history.ts";
import type { Book } from "../journal/source-journal.ts";
import { lostBetween } from "../own-facts/gap-facts.ts";
import { sessionIdentified } from "../own-facts/session-facts.ts";
import type { Redact } from "./connection.ts";
import {
  type Connection,
  type ConnectionChannel,
  fingerprintOf,
  type HeldFrame,
  isFromFile,
  type Masked,
} from "./connection.ts";
import type { Injections } from "./injections.ts";

export type ChannelRecordingOptions = {
  readonly book: Book;
  readonly reader: LogPast;
  readonly source: SourceName;
  readonly reading: Normalizer;
  readonly injections: Injections;
  readonly signal: AbortSignal;
  /** Larger frames are recorded without their bytes. */
  readonly frameBytes: number;
  /** Seconds that text lives in the log; absent: for ever. */
  readonly textTtl?: number | undefined;
  readonly onFrame: (channel: string, what: "recorded" | "repeated" | "unreadable" | "oversize") => void;
};

/** Records frames of a connection whose session is known; gives how many messages have been added when all of them are. */
export type RecordFrames = (
  connection: Connection,
  channel: ConnectionChannel,
  frames: readonly HeldFrame[],
  redact: Redact,
) => Promise<number>;

export function channelRecording(options: ChannelRecordingOptions): RecordFrames {
  const { book, reader, source, reading, injections, signal, frameBytes, textTtl, onFrame } = options;
  const { history, numbers, writer } = book;
  const readBackOnce = new Set<string>();

  async function openStore(connection: Connection, { reading: channel }: ConnectionChannel): Promise<ChannelStore> {
    const session = history.session;
    if (session === undefined || numbers.ordinal(channel.name) === 0) return emptyStore(channel);
    // What is still on its way to the log could be repeated too.
    await writer.reached(writer.appended);
    const isFirst = !readBackOnce.has(channel.name);
    readBackOnce.add(channel.name);
    const connectedSeq = connection.resumedSeq ?? Number.POSITIVE_INFINITY;
    // What this recorder has recorded itself, it has taken off the expected injections already.
    const onRecorded = isFirst ? injections.recorded : () => {};
    const pieceOf = (bytes: Uint8Array) => reading.pieceOf?.(channel.name, bytes);
    const of = { reader, source, channel, session, connectedSeq, isFromFile: isFromFile(connection) };
    return readBack({ ...of, signal, onFrame: onRecorded, pieceOf });
  }

  /** What has to be said before the first frames that a connection brings of a channel. */
  function begin(
    connection: Connection,
    channel: ConnectionChannel,
    store: ChannelStore,
    first: readonly string[],
    at: Moment,
  ): void {
    const { name, replays } = channel.reading;
    if (store.unfinished !== undefined) {
      const { event, part, facts } = store.unfinished;
      const { injected, redacted, observed_at: observedAt = momentNow() } = event;
      book.publish(facts.map((fact, i) => numbers.laterPart(name, part + i, fact, { observedAt, injected, redacted })));
    }
    const { lastEarlier, begun } = store;
    if (replays || !connection.rejoined || begun || history.hasGap(name, at)) return;
    // Before its first line there may have been others, which are not repeated.
    if (lastEarlier !== undefined && first.includes(lastEarlier)) return;
    book.publish([book.own(connection.session, lostBetween(name), at)]);
  }

  /** Text that would have expired: the log has forgotten whether it had it. */
  function isForgotten({ rejoined, resumedSeq }: Connection, { moment }: HeldFrame, facts: readonly Fact[]): boolean {
    if (textTtl === undefined || moment === undefined || !(rejoined || resumedSeq !== undefined)) return false;
    return isText(facts) && msBetween(moment, momentNow()) >= textTtl * 1_000;
  }

  function number(
    connection: Connection,
    channel: ConnectionChannel,
    store: ChannelStore,
    frame: HeldFrame,
    masked: Masked,
  ): readonly Numbered[] {
    const { name, messageType } = channel.reading;
    const { bytes, redacted, sha } = masked;
    const facts = read(store, bytes);
    if (isForgotten(connection, frame, facts)) {
      onFrame(name, "repeated");
      return [];
    }
    onFrame(name, "recorded");
    if (facts[0].kind === "upstream.unreadable") onFrame(name, "unreadable");
    if (bytes.byteLength > frameBytes) onFrame(name, "oversize");
    const original = originalOf(messageType, bytes, sha, frameBytes);
    const injected = injections.take(name, bytes);
    return numbers.frame(name, facts, original, { observedAt: frame.at, redacted, injected });
  }

  return async (connection, channel, frames, redact) => {
    const { name } = channel.reading;
    const breathe = breather();
    // Long work for a large piece; from here on each frame knows its masked form.
    for (const frame of frames) {
      await frame.prepare(redact);
      frame.masked(redact);
      await breathe();
    }
    if (channel.store === undefined) {
      channel.store = await openStore(connection, channel);
      begin(
        connection,
        channel,
        channel.store,
        frames.map((frame) => frame.masked(redact).sha),
        frames[0]?.at ?? momentNow(),
      );
    }
    const { store } = channel;
    const fresh = await freshFrames(store, frames, { reading, channel: name, redact });
    for (let i = fresh.length; i < frames.length; i++) onFrame(name, "repeated");
    const isLive = channel.holdBack.state === "live";
    let fingerprint = history.session?.fingerprints.has(name)
      ? undefined
      : fingerprintOf(
          fresh.map(({ frame }) => frame),
          redact,
        );
    for (const [i, { frame, masked }] of fresh.entries()) {
      // Only with the last message: after a crash before it the rest has to be sorted again.
      if (isLive && i === fresh.length - 1) numbers.settle(name);
      // Together with the first frame, so that no frame is without its channel's fingerprint.
      const identified = fingerprint && book.own(connection.session, sessionIdentified(name, fingerprint), frame.at);
      fingerprint = undefined;
      book.publish([...(identified ? [identified] : []), ...number(connection, channel, store, frame, masked)]);
      await writer.room();
      await breathe();
    }
    if (isLive) numbers.settle(name);
    return fresh.length === 0 ? 0 : writer.appended;
  };
}

/** Readers are total; should one fail after all, its frame is unreadable and recording goes on. */
function read({ reader }: ChannelStore, bytes: Uint8Array): readonly [Fact, ...Fact[]] {
  try {
    return reader.read(bytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return [{ kind: "upstream.unreadable", summary: `${bytes.byteLength} bytes that can't be read: ${reason}` }];
  }
}
