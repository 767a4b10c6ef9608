import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { maxEventsBetween, type Offset } from "@tapedeck/shared/log/offset";
import { channelFilter } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Fact } from "../../normalize/fact.ts";
import type { ChannelNormalizer, FrameReader } from "../../normalize/normalizer.ts";
import { recordedHashes } from "../../normalize/original.ts";
import { type Piece, Tails } from "../../secrets/pieces.ts";
import type { LogHistoryReader } from "../journal/load-history.ts";
import { KnownFrames } from "./known-frames.ts";
import { isTextFrame, type LastNumbers, raised } from "./numbering.ts";

/** The state for recording one channel of a session on one connection. */
export type ChannelStore = {
  readonly reader: FrameReader;
  readonly known: KnownFrames;
  readonly tails: Tails;
  /** Hashes of the last frame recorded from an earlier connection; undefined if there is none. */
  readonly lastEarlier: readonly string[] | undefined;
  /** Frames of this connection have been recorded. */
  readonly hasFrames: boolean;
  /** The last frame, if only some of its events got into the log. */
  readonly unfinished: { readonly event: Event; readonly part: number; readonly facts: readonly Fact[] } | undefined;
};

export function emptyStore(frameReader: FrameReader): ChannelStore {
  return {
    reader: frameReader,
    known: new KnownFrames(),
    tails: new Tails(),
    lastEarlier: undefined,
    hasFrames: false,
    unfinished: undefined,
  };
}

type ReadBack = {
  readonly reader: LogHistoryReader;
  readonly source: SourceName;
  readonly channel: ChannelNormalizer;
  /** A new reader of the channel's frames. */
  readonly frameReader: FrameReader;
  readonly session: { readonly id: string; readonly afterOffset: Offset };
  /**
   * The next frames come from a file, whose bytes may differ from the stream's: it has U+FFFD for text that is not UTF-8,
   * and maps may be in another order. So frames are also matched by their own time.
   */
  readonly isFromFile: boolean;
  /** Events after this offset come from the connection that now continues. */
  readonly connectedOffset: Offset;
  readonly signal: AbortSignal;
  /** Called with each recorded frame. */
  readonly onFrame: (event: Event, offset: Offset) => void;
  /** The output in a recorded frame. */
  readonly pieceOf: (bytes: Uint8Array) => Piece | undefined;
};

/** A crash may have divided the events of a frame that exceed one batch together. */
const dividedBytes = 3 * 1024 * 1024;

/** Reads a session's channel back from the log: the frames that it has, and a reader that has resumed at its end. */
export async function readBack(options: ReadBack): Promise<ChannelStore> {
  const { source, channel, frameReader, session, connectedOffset, isFromFile, signal, onFrame } = options;
  const known = new KnownFrames();
  const tails = new Tails();
  const subjects = [channelFilter(source, channel.name)];
  const until = await options.reader.lastMatch(subjects);
  let lastEarlier: readonly string[] | undefined;
  let hasFrames = false;
  let frame: Event[] = [];
  const yieldIfDue = yieldToEventLoop();
  for await (const { event, offset } of options.reader.history(
    { afterOffset: session.afterOffset, subjects },
    until,
    signal,
  )) {
    await yieldIfDue();
    if (event.session !== session.id) continue;
    if (event.part === 0) {
      for (const part of frame) frameReader.resume(part);
      frame = [];
      if (event.original !== undefined) {
        const piece = isTextFrame([event]) ? options.pieceOf(event.original.bytes) : undefined;
        if (offset > connectedOffset && !hasFrames) tails.reset();
        if (piece !== undefined) tails.took(piece);
        const hashes = recordedHashes(event.original);
        if (offset > connectedOffset) {
          known.addOfThis(hashes, event.observed_at);
          hasFrames = true;
        } else {
          known.addEarlier(hashes, isFromFile ? channel.timestampOf(event.original.bytes) : undefined);
          lastEarlier = hashes;
        }
      }
      onFrame(event, offset);
    }
    frame.push(event);
  }
  signal.throwIfAborted();
  const unfinished = finish(frameReader, frame);
  if (!hasFrames) tails.reset();
  return { reader: frameReader, known, tails, lastEarlier, hasFrames, unfinished };
}

function finish(reader: FrameReader, frame: readonly Event[]): ChannelStore["unfinished"] {
  const [first] = frame;
  const bytes = first?.original?.bytes;
  if (first === undefined || bytes === undefined || bytes.byteLength < dividedBytes) {
    for (const part of frame) reader.resume(part);
    return undefined;
  }
  const facts = reader.read(bytes, first.injected);
  return facts.length > frame.length
    ? { event: first, part: frame.length, facts: facts.slice(frame.length) }
    : undefined;
}

type LastNumbersOptions = Pick<ReadBack, "reader" | "source" | "session" | "signal"> & {
  /** Set if text of the source expires: all of the session is at or before this offset. */
  readonly expiresUntil?: Offset | undefined;
};

/** The last numbers of an earlier session's channels, from the log. They are raised if the last messages may have expired. */
export async function lastNumbers(
  { reader, source, session, signal, expiresUntil }: LastNumbersOptions,
  channels: readonly string[],
): Promise<LastNumbers> {
  const ordinals = new Map<string, number>();
  const frames = new Map<string, number>();
  const unused = new Map<string, number>();
  for (const name of channels) {
    const subjects = [channelFilter(source, name)];
    const until = await reader.lastMatch(subjects);
    let lastOffset = session.afterOffset;
    for await (const { event, offset } of reader.history(
      { afterOffset: session.afterOffset, subjects },
      until,
      signal,
    )) {
      if (event.session !== session.id) continue;
      ordinals.set(name, Number(event.ordinal));
      frames.set(name, Number(event.frame_ordinal));
      lastOffset = offset;
    }
    if (expiresUntil === undefined) continue;
    const last = { ordinals: { [name]: ordinals.get(name) ?? 0 }, frames: { [name]: frames.get(name) ?? 0 } };
    const safe = raised(last, maxEventsBetween(lastOffset, expiresUntil));
    for (const [all, one] of [
      [ordinals, safe.ordinals],
      [frames, safe.frames],
      [unused, safe.unused ?? {}],
    ] as const) {
      for (const [channel, number] of Object.entries(one)) all.set(channel, number);
    }
  }
  signal.throwIfAborted();
  return {
    ordinals: Object.fromEntries(ordinals),
    frames: Object.fromEntries(frames),
    unused: Object.fromEntries(unused),
  };
}
