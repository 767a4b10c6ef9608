import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { movedBy } from "./event-log.ts";
import type { RecordedMessage, RecordedUpstream } from "./recording.ts";
import { renumbered, repeatedPart } from "./timed.ts";

const hourMs = 3_600_000;
/** Before the end of the day's work. */
const roundsBefore = [2 * hourMs, hourMs] as const;

export type PastOptions = {
  /** The end of the day's work: ms since 1970. */
  readonly until: number;
  /** How much longer everything took than in the recording. */
  readonly slower: number;
};

/** The same process, as if it had run on a day before today: its later dev loops twice, up to a good one. */
export function inThePast(recording: RecordedUpstream, { until, slower }: PastOptions): RecordedUpstream {
  const { from, to, loops } = repeatedPart(recording);
  const lastGood = recording.messages.v1.findLast(({ at, bytes }) => at <= to && endsWell(bytes))?.at ?? to;
  const messages = (channel: SkaffoldChannel): readonly RecordedMessage[] =>
    roundsBefore.flatMap((before, round) =>
      recording.messages[channel].flatMap((message): RecordedMessage[] => {
        const isLast = round === roundsBefore.length - 1;
        if (message.at > (isLast ? lastGood : to) || (round > 0 && message.at < from)) return [];
        const moved = movedBy(channel, message, Math.round(until - before + (message.at - from) * slower - message.at));
        return [{ at: moved.at, bytes: renumbered(channel, moved.bytes, round * loops) }];
      }),
    );
  return { ...recording, messages: { v1: messages("v1"), v2: messages("v2"), logs: messages("logs") }, ends: {} };
}

function endsWell(bytes: Buffer): boolean {
  const event = LogEntry.decode(bytes).event?.event_type;
  return event?.$case === "devLoopEvent" && event.value.status === "Succeeded";
}
