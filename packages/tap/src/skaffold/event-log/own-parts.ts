import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments } from "@tapedeck/shared/time/moment";
import type { LoggedChannel } from "./event-log-place.ts";
import { goesBack } from "./goes-back.ts";
import type { HeardFrames } from "./heard-frames.ts";
import { momentOfLine } from "./line-moment.ts";

/** In bytes of a file; without its end. */
export type Part = { readonly start: number; readonly end: number };

export type OwnParts = Readonly<Record<LoggedChannel, readonly Part[]>>;

/** What is known of a process. */
export type Known = {
  readonly heard: HeardFrames;
  /** It has said nothing before. */
  readonly since: Moment | undefined;
};

type TextLine = { readonly text: string; readonly start: number; readonly end: number };
type PartDraft = {
  start: number;
  end: number;
  first: Moment | undefined;
  latest: Moment | undefined;
  isHeard: boolean;
};

/**
 * Where one process' own messages stand in a channel's file, in which others may have written too: those that it has
 * started (they have its variables), and those beside it that were told the same file. All write at their ends, so what
 * another one wrote before it goes on later than it begins. Own is what shares a message with what was heard; where nothing
 * was heard of the channel, what begins first. Reads the times only.
 */
export async function ownPartsOf(
  channel: LoggedChannel,
  { heard, since }: Known,
  lines: AsyncIterable<TextLine>,
  from: number,
): Promise<readonly Part[]> {
  let part: PartDraft = { start: from, end: from, first: undefined, latest: undefined, isHeard: false };
  const parts = [part];
  for await (const { text, start, end } of lines) {
    const moment = momentOfLine(text);
    if (moment !== undefined && goesBack(part.latest, moment)) {
      part = { start, end, first: undefined, latest: undefined, isHeard: false };
      parts.push(part);
    }
    part.end = end;
    if (moment === undefined) continue;
    if (part.latest === undefined || compareMoments(moment, part.latest) > 0) part.latest = moment;
    if (part.first === undefined && (since === undefined || compareMoments(moment, since) >= 0)) part.first = moment;
    part.isHeard ||= heard.has(channel, moment);
  }
  if (heard.hasOf(channel)) return parts.filter(({ isHeard }) => isHeard);
  return parts
    .filter(({ first }) => first !== undefined)
    .sort(byFirst)
    .slice(0, 1);
}

function byFirst(a: PartDraft, b: PartDraft): number {
  return a.first === undefined || b.first === undefined ? 0 : compareMoments(a.first, b.first);
}

export function isIn(parts: readonly Part[], place: number): boolean {
  return parts.some(({ start, end }) => start <= place && place < end);
}
