import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { msBetween } from "@tapedeck/shared/time/timestamp";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { PendingFrame } from "../frames/pending-frame.ts";
import type { ReplayTimes } from "../frames/replay-sorter.ts";
import type { AckWatermark } from "../journal/ack-watermark.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import type { ChannelRecorder } from "./channel-recorder.ts";
import {
  assemble,
  beginOf,
  type ConnectionChannel,
  connectionChannel,
  type FramePiece,
  isFromFile,
  runPending,
  type UpstreamConnection,
} from "./connection.ts";
import type { Sessions } from "./sessions.ts";

/** A connection that sends nothing to identify its session for this long gets a new session. */
const undecidedMs = 2_000;
/** The same limit in frames, for a tap whose clock stands still. */
const undecidedFrames = 2_000;

export type FrameRecorderOptions = {
  readonly journal: SourceJournal;
  readonly normalizer: Normalizer;
  readonly watermark: AckWatermark;
  readonly sessions: Sessions;
  readonly channels: ChannelRecorder;
  readonly replay?: ReplayTimes | undefined;
  /** See FrameFunctions. */
  readonly identityKey?: Uint8Array | undefined;
  readonly onUnknownChannel?: ((channel: string) => void) | undefined;
  /** The connection's session is known now. */
  readonly onSession: (connection: UpstreamConnection) => void;
};

/**
 * Brings a connection's frames to the recorders of their channels: joins their pieces, holds what a channel repeats until
 * it is sorted, and finds the connection's session. What gives undefined instead of a promise is done.
 */
export class FrameRecorder {
  readonly #options: FrameRecorderOptions;

  constructor(options: FrameRecorderOptions) {
    this.#options = options;
  }

  take(
    connection: UpstreamConnection,
    { channel: name, bytes, more }: FramePiece,
    at: Timestamp,
    index: bigint,
  ): Promise<void> | undefined {
    const channel = this.#channelOf(connection, name);
    if (channel === undefined) {
      this.#options.onUnknownChannel?.(name);
      this.#options.watermark.finished(index, 0);
      return undefined;
    }
    const whole = assemble(channel, index, bytes, more);
    if (whole === undefined) return undefined;
    const frame = new PendingFrame(whole, at, channel.functions);
    connection.firstFrameAt ??= at;
    const delivered = this.#deliver(connection, channel, channel.sorter.take(frame, at));
    if (delivered === undefined && connection.session !== "") return undefined;
    return Promise.resolve(delivered).then(() => this.#decide(connection, at, false));
  }

  /** Records what is due because time has passed. */
  async advance(connection: UpstreamConnection, at: Timestamp): Promise<void> {
    for (const channel of connection.channels.values()) {
      await this.#deliver(connection, channel, channel.sorter.advance(at));
    }
    await this.#decide(connection, at, false);
  }

  /** Records what the channel holds. */
  async release(connection: UpstreamConnection, name: string, at: Timestamp): Promise<void> {
    const channel = connection.channels.get(name);
    if (channel !== undefined) await this.#deliver(connection, channel, channel.sorter.release());
    await this.#decide(connection, at, false);
  }

  /** Records everything that the connection has brought. No more comes. */
  async close(connection: UpstreamConnection, at: Timestamp): Promise<void> {
    for (const pieces of connection.observationPieces.values()) this.#dropPartial(pieces);
    for (const channel of connection.channels.values()) {
      this.#dropPartial(channel);
      await this.#deliver(connection, channel, channel.sorter.release());
    }
    await this.#decide(connection, at, true);
    runPending(connection);
  }

  #channelOf(connection: UpstreamConnection, name: string): ConnectionChannel | undefined {
    const known = connection.channels.get(name);
    if (known !== undefined) return known;
    const { normalizer, journal, replay, identityKey } = this.#options;
    const channelReading = normalizer.channels.find((one) => one.name === name);
    if (channelReading === undefined) return undefined;
    const isLive = connection.resumedOffset !== undefined && journal.numbers.isRepeatOver(name);
    const channel = connectionChannel(channelReading, normalizer, { live: isLive, replay, identityKey });
    connection.channels.set(name, channel);
    return channel;
  }

  /** The rest of the frame never came. */
  #dropPartial(channel: Pick<ConnectionChannel, "partial">): void {
    for (const index of channel.partial?.indexes ?? []) this.#options.watermark.finished(index, 0);
    channel.partial = undefined;
  }

  #deliver(
    connection: UpstreamConnection,
    channel: ConnectionChannel,
    frames: readonly PendingFrame[],
  ): Promise<void> | undefined {
    if (frames.length === 0) return undefined;
    channel.ready = true;
    if (connection.session !== "") return this.#record(connection, channel, frames);
    channel.waiting = channel.waiting.concat(frames);
    return undefined;
  }

  /** Commits all items of a sorted piece together, so that after a crash the whole piece is pushed and sorted again. */
  #record(
    connection: UpstreamConnection,
    channel: ConnectionChannel,
    frames: readonly PendingFrame[],
  ): Promise<void> | undefined {
    const { channels, sessions } = this.#options;
    const events = channels.record(connection, channel, frames, sessions.redact());
    if (typeof events !== "number") return events.then((count) => this.#finish(frames, count));
    this.#finish(frames, events);
    return undefined;
  }

  #finish(frames: readonly PendingFrame[], events: number): void {
    for (const { indexes } of frames) for (const index of indexes) this.#options.watermark.finished(index, events);
  }

  /** Finds the connection's session once its channels have sent enough, and records the frames that waited for that. */
  async #decide(connection: UpstreamConnection, at: Timestamp, final: boolean): Promise<void> {
    const { sessions, onSession } = this.#options;
    const { firstFrameAt, channels } = connection;
    if (connection.session !== "" || firstFrameAt === undefined) return;
    const isHeld = ({ ready, sorter }: ConnectionChannel) => !ready && sorter.state === "holding";
    if (!final && [...channels.values()].some(isHeld)) return;
    const frames = [...channels.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
    const isLast = final || frames >= undecidedFrames || msBetween(firstFrameAt, at) >= undecidedMs;
    if (frames === connection.undecidedFrames && !isLast) return;
    connection.undecidedFrames = frames;
    const verdict = await sessions.find(connection, isLast);
    if (verdict === "wait") return;
    // Frames from a file come long after they happened, and those of a short process are decided on at its end.
    const isLate = isFromFile(connection) || final;
    if (verdict === "new") sessions.begin(connection, isLate ? beginOf(connection, firstFrameAt) : at);
    else await sessions.rejoin(connection, verdict, at);
    // Its connection may be over in a moment.
    onSession(connection);
    await this.#recordWaiting(connection);
    runPending(connection);
  }

  async #recordWaiting(connection: UpstreamConnection): Promise<void> {
    for (const { name } of this.#options.normalizer.channels) {
      const channel = connection.channels.get(name);
      if (channel === undefined || channel.waiting.length === 0) continue;
      const { waiting } = channel;
      channel.waiting = [];
      await this.#record(connection, channel, waiting);
    }
  }
}
