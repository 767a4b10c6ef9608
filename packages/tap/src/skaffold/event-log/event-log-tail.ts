import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { ImportedFrame } from "./event-log-file.ts";
import { type EventLogOffsets, endOf, fileOf, type LoggedChannel, loggedChannels } from "./event-log-offsets.ts";
import { fileLines } from "./file-lines.ts";
import type { KnownProcess, OwnParts } from "./own-parts.ts";

/** True for a message that the streams have delivered, by its channel and its own time. Called once for each line. */
export type IsReceived = (channel: string, timestamp: Timestamp) => boolean;

/** `isOwn`: the frame is in the given parts. */
export type AddedFrame = ImportedFrame & { readonly isOwn: boolean };

/** A frame, and where its line begins and ends, in bytes. */
type FrameInFile = {
  readonly frame: ImportedFrame;
  readonly channel: LoggedChannel;
  readonly start: number;
  readonly end: number;
};

/** No message of Skaffold makes a longer line. */
const maxLineBytes = 256 * 1024 * 1024;

/** The part of the file that is read. */
export type EventLogRange = {
  /** Default: the beginning. */
  readonly from?: EventLogOffsets | undefined;
  /** Default: the end at the time of reading. */
  readonly until?: EventLogOffsets | undefined;
};

/**
 * Reads what Skaffold appends to an event log file, from its previous end. A missing file is empty. A signal ends each
 * reading at once, without an error. What reads lines is loaded when there are some: it takes time and memory, and most
 * commands need it at their end or never.
 */
export class EventLogTail {
  readonly path: string;
  readonly #until: EventLogOffsets | undefined;
  #offsets: EventLogOffsets;
  #lines = { v1: 0, v2: 0 };

  constructor(path: string, { from = { v1: 0, v2: 0 }, until }: EventLogRange = {}) {
    this.path = path;
    this.#offsets = from;
    this.#until = until;
  }

  /** The number of lines read from each file. */
  get lines(): Readonly<Record<LoggedChannel, number>> {
    return this.#lines;
  }

  get hasMore(): boolean {
    return this.#hasUntil(this.#end());
  }

  /** The parts of what `added` would read now that belong to one process. */
  async ownParts(known: KnownProcess, signal: AbortSignal): Promise<OwnParts> {
    // The end is that of now: what is written while modules are loaded comes the next time.
    const end = this.#end();
    if (!this.#hasUntil(end)) return { v1: [], v2: [] };
    const { ownPartsOf } = await import("./own-parts.ts");
    const parts = (channel: LoggedChannel) =>
      ownPartsOf(channel, known, this.#texts(channel, end[channel], signal), this.#offsets[channel]);
    return { v1: await parts("v1"), v2: await parts("v2") };
  }

  /**
   * The messages appended to both files since the last time that no stream delivered, ordered by time, each file in its
   * own order. Bad lines are skipped. A caller that stops early gets the rest the next time.
   */
  async *added(isReceived: IsReceived, signal: AbortSignal, own?: OwnParts): AsyncGenerator<AddedFrame, void> {
    const end = this.#end();
    if (!this.#hasUntil(end)) return;
    const { isIn } = await import("./own-parts.ts");
    const unreceived = (channel: LoggedChannel) => this.#unreceived(channel, end[channel], isReceived, signal);
    const [v1, v2] = [unreceived("v1"), unreceived("v2")];
    try {
      let [left, right] = [await v1.next(), await v2.next()];
      while (!left.done || !right.done) {
        const isLeft =
          right.done || (!left.done && compareTimestamps(left.value.frame.timestamp, right.value.frame.timestamp) <= 0);
        const next = isLeft ? left : right;
        if (next.done || signal.aborted) return;
        const { frame, channel, start } = next.value;
        this.#passed(channel, next.value.end);
        yield { ...frame, isOwn: own !== undefined && isIn(own[channel], start) };
        if (isLeft) left = await v1.next();
        else right = await v2.next();
      }
    } finally {
      await v1.return();
      await v2.return();
    }
  }

  async *#unreceived(
    channel: LoggedChannel,
    end: number,
    isReceived: IsReceived,
    signal: AbortSignal,
  ): AsyncGenerator<FrameInFile, void> {
    const [{ readEventLogLine }, { timestampAtStart }] = await Promise.all([
      import("./event-log-file.ts"),
      import("./line-timestamp.ts"),
    ]);
    for await (const { text, start, end: lineEnd } of this.#texts(channel, end, signal)) {
      const timestamp = timestampAtStart(text);
      const isKnown = timestamp !== undefined && isReceived(channel, timestamp);
      const frame = isKnown ? undefined : readEventLogLine(text);
      if (typeof frame === "object" && (timestamp !== undefined || !isReceived(channel, frame.timestamp))) {
        yield { frame, channel, start, end: lineEnd };
      } else this.#passed(channel, lineEnd);
    }
  }

  /** Complete lines only: the last one may still be in writing. */
  async *#texts(channel: LoggedChannel, end: number, signal: AbortSignal) {
    let start = this.#offsets[channel];
    if (end <= start || signal.aborted) return;
    try {
      for await (const { text, bytes } of fileLines(fileOf(this.path, channel), maxLineBytes, start, signal)) {
        const lineEnd = start + bytes.byteLength;
        if (signal.aborted || lineEnd > end || bytes.at(-1) !== newline) return;
        yield { text, start, end: lineEnd };
        start = lineEnd;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #hasUntil(end: EventLogOffsets): boolean {
    return loggedChannels.some((channel) => end[channel] > this.#offsets[channel]);
  }

  #end(): EventLogOffsets {
    const { v1, v2 } = endOf(this.path);
    return { v1: Math.min(v1, this.#until?.v1 ?? v1), v2: Math.min(v2, this.#until?.v2 ?? v2) };
  }

  #passed(channel: LoggedChannel, end: number): void {
    this.#offsets = { ...this.#offsets, [channel]: end };
    this.#lines = { ...this.#lines, [channel]: this.#lines[channel] + 1 };
  }
}

const newline = 10;
