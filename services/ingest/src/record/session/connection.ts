import type { Dialled } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { ChannelNormalizer, Normalizer } from "../../normalize/normalizer.ts";
import type { ChannelStore } from "../frames/channel-store.ts";
import {
  type FrameFunctions,
  fingerprintOf,
  type PendingFrame,
  type Redact,
  type WholeFrame,
} from "../frames/pending-frame.ts";
import { ReplaySorter, type ReplayTimes } from "../frames/replay-sorter.ts";
import type { ReceivedChannel } from "./session-match.ts";

/** One channel of a connection. */
export type ConnectionChannel = {
  readonly normalizer: ChannelNormalizer;
  readonly functions: FrameFunctions;
  readonly sorter: ReplaySorter<PendingFrame>;
  /** Pieces of an incomplete frame. */
  partial: { readonly indexes: readonly bigint[]; readonly pieces: readonly Uint8Array[] } | undefined;
  /** Frames that have left the replay sorter while the session is not known yet. */
  waiting: readonly PendingFrame[];
  /** The replay sorter has released its first piece, or the whole repeat. */
  ready: boolean;
  store: ChannelStore | undefined;
};

export type UpstreamConnection = {
  readonly id: string;
  readonly address: string;
  /** The channel that reports the steps instead of the usual one, which an imported file doesn't have; else empty. */
  readonly standIn: string;
  /**
   * Offset of its upstream.connected if an earlier recorder has recorded frames of it, or may have; otherwise
   * undefined.
   */
  readonly resumedOffset: Offset | undefined;
  /** Empty until its session is known. */
  session: string;
  /** It belongs to an earlier session. What came in between and is not repeated is lost. */
  rejoined: boolean;
  firstFrameAt: Timestamp | undefined;
  /** How many frames had arrived when the session could not be decided last time. */
  undecidedFrames: number;
  readonly channels: Map<string, ConnectionChannel>;
  /** Pieces of incomplete observations, by channel. */
  readonly observationPieces: Map<string, Pick<ConnectionChannel, "partial">>;
  /** Records what else happened, once the session is known. */
  pending: (() => void)[];
};

export function connectionOf(
  id: string,
  address: string,
  session: string,
  resumedOffset: Offset | undefined,
): UpstreamConnection {
  return {
    id,
    address,
    standIn: "",
    session,
    resumedOffset,
    rejoined: false,
    firstFrameAt: undefined,
    undecidedFrames: 0,
    channels: new Map(),
    observationPieces: new Map(),
    pending: [],
  };
}

/** Its frames were read from a file that the upstream wrote, which holds another form of the same messages. */
export function isFromFile({ address }: Pick<UpstreamConnection, "address">): boolean {
  return address.startsWith("file:");
}

/** The channel of a file that reports the steps because the file doesn't have the one that usually does; else empty. */
export function standInOf({ channels }: Normalizer, { address, channels: own }: Pick<Dialled, "address" | "channels">) {
  if (!isFromFile({ address })) return "";
  const standIn = channels.find(({ name, without }) => without && own.includes(name) && !own.includes(without.channel));
  return standIn?.name ?? "";
}

/** Its session is not known yet, or a channel holds frames. */
export function isWaiting({ session, firstFrameAt, channels }: UpstreamConnection): boolean {
  if (session === "" && firstFrameAt !== undefined) return true;
  for (const { sorter } of channels.values()) if (sorter.state === "holding") return true;
  return false;
}

export function whenDecided(connection: UpstreamConnection, run: () => void): void {
  if (connection.session === "") connection.pending.push(run);
  else run();
}

export function runPending(connection: UpstreamConnection): void {
  const { pending } = connection;
  connection.pending = [];
  for (const run of pending) run();
}

export type ChannelOptions = {
  /** It has finished its repeat. */
  readonly live: boolean;
  readonly replay?: ReplayTimes | undefined;
  readonly identityKey?: Uint8Array | undefined;
};

export function connectionChannel(
  normalizer: ChannelNormalizer,
  { mask, maskInThread }: Pick<Normalizer, "mask" | "maskInThread">,
  { live, replay = {}, identityKey }: ChannelOptions,
): ConnectionChannel {
  const { name, timestampOf } = normalizer;
  const functions: FrameFunctions = {
    mask: (bytes) => mask(name, bytes),
    maskApart: maskInThread && ((bytes) => maskInThread.mask(name, bytes)),
    timestampOf,
    identityKey,
  };
  const started = { partial: undefined, waiting: [], ready: live, store: undefined };
  return { normalizer, functions, sorter: new ReplaySorter<PendingFrame>({ live, ...replay }), ...started };
}

export type FramePiece = { readonly channel: string; readonly bytes: Uint8Array; readonly more: boolean };

/** Joins pieces to one frame; undefined while more are to come. Pieces may share an index or have their own. */
export function assemble(
  channel: Pick<ConnectionChannel, "partial">,
  index: bigint,
  piece: Uint8Array,
  more: boolean,
): WholeFrame | undefined {
  if (channel.partial === undefined && !more) return { bytes: piece, indexes: [index] };
  const { indexes = [], pieces = [] } = channel.partial ?? {};
  const all = { indexes: [...indexes, index], pieces: [...pieces, piece] };
  channel.partial = more ? all : undefined;
  if (more) return undefined;
  return { bytes: all.pieces.length === 1 ? piece : Buffer.concat(all.pieces), indexes: all.indexes };
}

/** The earliest that is known of the process: when its first frame came, or an own time of a frame before that. */
export function beginOf({ channels }: UpstreamConnection, firstFrameAt: Timestamp): Timestamp {
  let begin = firstFrameAt;
  for (const { waiting } of channels.values()) {
    for (const { timestamp } of waiting)
      if (timestamp !== undefined && compareTimestamps(timestamp, begin) < 0) begin = timestamp;
  }
  return begin;
}

/** The content received so far on each channel, by its bytes before masking. */
export function receivedRaw({ channels }: UpstreamConnection): Map<string, Pick<ReceivedChannel, "shas">> {
  const received = new Map<string, Pick<ReceivedChannel, "shas">>();
  for (const [name, { waiting }] of channels) {
    if (waiting.length > 0) received.set(name, { shas: new Set(waiting.flatMap(({ rawHashes }) => rawHashes)) });
  }
  return received;
}

/** The content received so far on each channel, as it would be recorded with this setting. */
export function receivedBy({ channels }: UpstreamConnection, redact: Redact): Map<string, ReceivedChannel> {
  const received = new Map<string, ReceivedChannel>();
  for (const [name, { normalizer, waiting }] of channels) {
    if (waiting.length === 0) continue;
    const shas = new Set(waiting.map((frame) => frame.masked(redact).sha));
    received.set(name, { shas, fingerprint: fingerprintOf(waiting, redact)?.sha, complete: normalizer.replays });
  }
  return received;
}
