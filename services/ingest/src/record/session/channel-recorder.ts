import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { beyondAll, type Offset } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { msBetween, timestampNow } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../normalize/fact.ts";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { type ChannelStore, emptyStore, readBack } from "../frames/channel-store.ts";
import { freshFrames } from "../frames/fresh-frames.ts";
import { isText, type Numbered } from "../frames/numbering.ts";
import { originalOf } from "../frames/original.ts";
import type { LogHistoryReader } from "../journal/load-history.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import { lostBetween } from "../own-facts/gap-facts.ts";
import { sessionIdentified } from "../own-facts/session-facts.ts";
import type { Redact } from "./connection.ts";
import {
  type ConnectionChannel,
  fingerprintOf,
  type HeldFrame,
  isFromFile,
  type Masked,
  type UpstreamConnection,
} from "./connection.ts";
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
  readonly onFrame: (channel: string, what: "recorded" | "repeated" | "unreadable" | "oversize") => void;
};

/** Records frames of a connection whose session is known. Resolves with how many messages were added in total by then. */
export type RecordFrames = (
  connection: UpstreamConnection,
  channel: ConnectionChannel,
  frames: readonly HeldFrame[],
  redact: Redact,
) => Promise<number>;

export function channelRecorder(options: ChannelRecorderOptions): RecordFrames {
  const { journal, reader, source, normalizer, injections, signal, frameBytes, textTtl, onFrame } = options;
  const { history, numbers, writer } = journal;
  const readBackOnce = new Set<string>();

  async function openStore(
    connection: UpstreamConnection,
    { normalizer: channel }: ConnectionChannel,
  ): Promise<ChannelStore> {
    const session = history.session;
    if (session === undefined || numbers.ordinal(channel.name) === 0) return emptyStore(channel);
    // The connection may also repeat frames that are still on their way to the log.
    await writer.reached(writer.appended);
    const isFirst = !readBackOnce.has(channel.name);
    readBackOnce.add(channel.name);
    const connectedOffset = connection.resumedOffset ?? beyondAll;
    // This recorder has already removed what it recorded itself from the expected injections.
    const onRecorded = isFirst ? (event: Event, offset: Offset) => injections.recorded(event, offset) : () => {};
    const pieceOf = (bytes: Uint8Array) => normalizer.pieceOf?.(channel.name, bytes);
    const of = { reader, source, channel, session, connectedOffset, isFromFile: isFromFile(connection) };
    return readBack({ ...of, signal, onFrame: onRecorded, pieceOf });
  }

  /** Records what must precede the first frames of a channel on this connection. */
  function begin(
    connection: UpstreamConnection,
    channel: ConnectionChannel,
    store: ChannelStore,
    first: readonly string[],
    at: Timestamp,
  ): void {
    const { name, replays } = channel.normalizer;
    if (store.unfinished !== undefined) {
      const { event, part, facts } = store.unfinished;
      const { injected, redacted, observed_at: observedAt = timestampNow() } = event;
      journal.publish(
        facts.map((fact, i) => numbers.laterPart(name, part + i, fact, { observedAt, injected, redacted })),
      );
    }
    const { lastEarlier, begun } = store;
    if (replays || !connection.rejoined || begun || history.hasGap(name, at)) return;
    // Lines before the first one may not have been repeated.
    if (lastEarlier !== undefined && first.includes(lastEarlier)) return;
    journal.publish([journal.own(connection.session, lostBetween(name), at)]);
  }

  /** The text would have expired by now, so the log no longer knows whether it had it. */
  function isForgotten(
    { rejoined, resumedOffset }: UpstreamConnection,
    { moment }: HeldFrame,
    facts: readonly Fact[],
  ): boolean {
    if (textTtl === undefined || moment === undefined || !(rejoined || resumedOffset !== undefined)) return false;
    return isText(facts) && msBetween(moment, timestampNow()) >= textTtl * 1_000;
  }

  function number(
    connection: UpstreamConnection,
    channel: ConnectionChannel,
    store: ChannelStore,
    frame: HeldFrame,
    masked: Masked,
  ): readonly Numbered[] {
    const { name, messageType } = channel.normalizer;
    const { bytes, redacted, sha } = masked;
    const facts = factsIn(store, bytes);
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
    const { name } = channel.normalizer;
    const yieldIfDue = yieldToEventLoop();
    // Masking takes long for a large piece. From here on each frame knows its masked form.
    for (const frame of frames) {
      await frame.prepare(redact);
      frame.masked(redact);
      await yieldIfDue();
    }
    if (channel.store === undefined) {
      channel.store = await openStore(connection, channel);
      begin(
        connection,
        channel,
        channel.store,
        frames.map((frame) => frame.masked(redact).sha),
        frames[0]?.at ?? timestampNow(),
      );
    }
    const { store } = channel;
    const fresh = await freshFrames(store, frames, { normalizer, channel: name, redact });
    for (let i = fresh.length; i < frames.length; i++) onFrame(name, "repeated");
    const isLive = channel.sorter.state === "live";
    let fingerprint = history.session?.fingerprints.has(name)
      ? undefined
      : fingerprintOf(
          fresh.map(({ frame }) => frame),
          redact,
        );
    for (const [i, { frame, masked }] of fresh.entries()) {
      // Settles only with the last message, because after a crash before it the rest must be sorted again.
      if (isLive && i === fresh.length - 1) numbers.settle(name);
      // Published with the first frame, so that no frame is without its channel's fingerprint.
      const identified = fingerprint && journal.own(connection.session, sessionIdentified(name, fingerprint), frame.at);
      fingerprint = undefined;
      journal.publish([...(identified ? [identified] : []), ...number(connection, channel, store, frame, masked)]);
      await writer.room();
      await yieldIfDue();
    }
    if (isLive) numbers.settle(name);
    return fresh.length === 0 ? 0 : writer.appended;
  };
}

/** Readers are total. If one fails nevertheless, its frame is unreadable and recording continues. */
function factsIn({ reader }: ChannelStore, bytes: Uint8Array): readonly [Fact, ...Fact[]] {
  try {
    return reader.read(bytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return [{ kind: "upstream.unreadable", summary: `${bytes.byteLength} bytes that can't be read: ${reason}` }];
  }
}
