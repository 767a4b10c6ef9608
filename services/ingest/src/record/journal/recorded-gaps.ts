import type { Event, GapDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampKey } from "@tapedeck/shared/time/timestamp";

export type ReportedGap = Pick<GapDetail, "channel" | "reason" | "output">;

/** The gaps that the log already has, so that none is recorded twice. */
export class RecordedGaps {
  readonly #byTime = new Set<string>();
  readonly #reported = new Set<string>();

  /** Whether a gap of the channel at this time is recorded. */
  has(channel: string, at: Timestamp): boolean {
    return this.#byTime.has(timeKey(channel, at));
  }

  /**
   * Whether the session has recorded this gap. Missing job output is identified by its position in the output, any other
   * gap by the observation that showed it.
   */
  hasReported(session: string, gap: ReportedGap, at: Timestamp): boolean {
    return this.#reported.has(reportKey(session, gap, at));
  }

  observe({ kind, detail, session, observed_at }: Event): void {
    if (kind !== "session.gap" || detail?.$case !== "gap") return;
    this.#byTime.add(timeKey(detail.value.channel, observed_at));
    this.#reported.add(reportKey(session, detail.value, observed_at));
  }
}

function timeKey(channel: string, at: Timestamp | undefined): string {
  return `${channel}@${timestampKey(at)}`;
}

function reportKey(session: string, { channel, reason, output }: ReportedGap, at: Timestamp | undefined): string {
  const position = output && [output.job, String(output.index), String(output.next_index ?? "")];
  return JSON.stringify([session, channel, ...(position ?? [timestampKey(at), reason])]);
}
