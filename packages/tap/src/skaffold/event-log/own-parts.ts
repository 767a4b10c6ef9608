import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { LoggedChannel } from "./event-log-offsets.ts";
import { goesBack } from "./goes-back.ts";
import { timestampOfLine } from "./line-timestamp.ts";
import type { ReceivedFrames } from "./received-frames.ts";

/** A range of bytes of a file; `end` is exclusive. */
export type Part = { readonly start: number; readonly end: number };

export type OwnParts = Readonly<Record<LoggedChannel, readonly Part[]>>;

/** The known facts about a process. */
export type KnownProcess = {
  readonly received: ReceivedFrames;
  /** The process has sent nothing before this time. */
  readonly since: Timestamp | undefined;
};

type TextLine = { readonly text: string; readonly start: number; readonly end: number };
type PartDraft = {
  start: number;
  end: number;
  first: Timestamp | undefined;
  latest: Timestamp | undefined;
  isReceived: boolean;
};

/**
 * Finds one process' own messages in a channel's file. Other processes may have written to it, too: processes that it
 * started (they inherit its variables), and processes beside it that were given the same file. All of them write at
 * their ends, so the file goes back in time where the next process begins. The own parts share a message with the
 * received ones. If the channel delivered nothing, the own part is the one that begins first. Reads the times only.
 */
export async function ownPartsOf(
  channel: LoggedChannel,
  { received, since }: KnownProcess,
  lines: AsyncIterable<TextLine>,
  from: number,
): Promise<readonly Part[]> {
  let part: PartDraft = { start: from, end: from, first: undefined, latest: undefined, isReceived: false };
  const parts = [part];
  for await (const { text, start, end } of lines) {
    const timestamp = timestampOfLine(text);
    if (timestamp !== undefined && goesBack(part.latest, timestamp)) {
      part = { start, end, first: undefined, latest: undefined, isReceived: false };
      parts.push(part);
    }
    part.end = end;
    if (timestamp === undefined) continue;
    if (part.latest === undefined || compareTimestamps(timestamp, part.latest) > 0) part.latest = timestamp;
    if (part.first === undefined && (since === undefined || compareTimestamps(timestamp, since) >= 0))
      part.first = timestamp;
    part.isReceived ||= received.has(channel, timestamp);
  }
  if (received.hasOf(channel)) return parts.filter(({ isReceived }) => isReceived);
  return parts
    .filter(({ first }) => first !== undefined)
    .sort(byFirst)
    .slice(0, 1);
}

function byFirst(a: PartDraft, b: PartDraft): number {
  return a.first === undefined || b.first === undefined ? 0 : compareTimestamps(a.first, b.first);
}

export function isIn(parts: readonly Part[], offset: number): boolean {
  return parts.some(({ start, end }) => start <= offset && offset < end);
}
