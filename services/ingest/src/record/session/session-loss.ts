import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import type { Numbered } from "../frames/numbering.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import { sessionGap } from "../own-facts/gap-facts.ts";
import { sessionEnded, sessionLost } from "../own-facts/session-facts.ts";

export type Loss = {
  readonly session: string;
  readonly reason: string;
  /** The last moment at which a tap listened. */
  readonly since: Timestamp | undefined;
  /** The upstream's process is known to be gone. Otherwise nothing is known of it. */
  readonly hasEnded?: boolean;
  /** The tap that was there may still bring what was missed. */
  readonly open?: boolean;
};

/**
 * The events for a session whose end was not observed, nor the events before it. It ended at some time after it was
 * last heard from. Publish them together.
 */
export function lossEvents(
  journal: SourceJournal,
  { session, reason, since, hasEnded = false, open = false }: Loss,
  at: Timestamp,
): Numbered[] {
  const from = since ?? journal.history.lastAt ?? at;
  const until = compareTimestamps(from, at) > 0 ? from : at;
  return [
    journal.own(session, sessionGap("", "no tap was listening any more", { open }), until, from),
    journal.own(session, hasEnded ? sessionEnded(reason) : sessionLost(reason), until, from),
  ];
}
