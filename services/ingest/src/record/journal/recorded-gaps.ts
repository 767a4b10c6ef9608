import type { Event, GapDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Moment } from "@tapedeck/shared/time/moment";
import { momentKey } from "@tapedeck/shared/time/moment";

export type ReportedGap = Pick<GapDetail, "channel" | "reason" | "output">;

/** The gaps that the log already has, so that none is recorded twice. */
export class RecordedGaps {
  readonly #byTime = new Set<string>();
  readonly #reported = new Set<string>();

  /** Whether a gap of the channel at this time is recorded. */
  has(channel: string, at: Moment): boolean {
    return this.#byTime.has(timeKey(channel, at));
  }

  /**
   * Whether the session has recorded this gap. Missing job output is identified by its position in the output, any other
   * gap by the observation that showed it.
   */
  hasReported(session: string, gap: ReportedGap, at: Moment): boolean {
    return this.#reported.has(reportKey(session, gap, at));
  }

  observe({ kind, detail, session, observed_at }: Event): void {
    if (kind !== "session.gap" || detail?.$case !== "gap") return;
    this.#byTime.add(timeKey(detail.value.channel, observed_at));
    this.#reported.add(reportKey(session, detail.value, observed_at));
  }
}

function timeKey(channel: string, at: Moment | undefined): string {
  return `${channel}@${momentKey(at)}`;
}

function reportKey(session: string, { channel, reason, output }: ReportedGap, at: Moment | undefined): string {
  const position = output && [output.job, String(output.index), String(output.next_index ?? "")];
  return JSON.stringify([session, channel, ...(position ?? [momentKey(at), reason])]);
}
