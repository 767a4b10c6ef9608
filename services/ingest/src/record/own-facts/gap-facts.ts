import type { GapDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Fact } from "../../normalize/fact.ts";
import { shorten } from "./shorten.ts";

export function sessionGap(
  channel: string,
  reason: string,
  { dropped = {}, output, open = false }: GapFields = {},
): Fact {
  const shortened = shorten(reason);
  return {
    kind: "session.gap",
    subject: channel,
    // The reason of missing job output names the job.
    summary:
      output === undefined
        ? `something${channel === "" ? "" : ` of ${channel}`} may be missing: ${shortened}`
        : shortened,
    detail: {
      $case: "gap",
      value: { channel, reason: shortened, dropped: { ...dropped }, output, ...(open && { open }) },
    },
  };
}

type GapFields = {
  readonly dropped?: Readonly<Record<string, bigint>>;
  readonly output?: GapDetail["output"];
  /** The missing events may still be recorded later. */
  readonly open?: boolean;
};

/** Everything that the open gap of a channel missed is now in the log. */
export function gapFilled(channel: string): Fact {
  const of = channel === "" ? "" : ` of ${channel}`;
  const value = { channel, reason: "", dropped: {}, output: undefined };
  return {
    kind: "session.gap_filled",
    subject: channel,
    summary: `all${of} that was missing has been recorded`,
    detail: { $case: "gap", value },
  };
}

/** The log itself was damaged. The session may be empty. */
export function lostFromLog(lost: NonNullable<GapDetail["lost"]>): Fact {
  const { after, before, events, ordinals } = lost;
  const channels = [...new Set(ordinals.map((range) => range.channel))];
  const channel = channels.length === 1 ? (channels[0] ?? "") : "";
  const where = after === "" ? `before ${before}` : before === "" ? `after ${after}` : `between ${after} and ${before}`;
  const reason = `the log has lost ${events} ${events === 1n ? "event" : "events"} ${where}: its files were damaged`;
  const value = { channel, reason, dropped: {}, lost };
  return { kind: "session.gap", subject: channel, summary: reason, detail: { $case: "gap", value } };
}

/** The channel repeats only a part to a new connection. */
export function lostBetween(channel: string): Fact {
  return sessionGap(channel, "events between two connections may be lost");
}
