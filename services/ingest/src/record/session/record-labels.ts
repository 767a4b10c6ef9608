import type { Labelled } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { SourceJournal } from "../journal/source-journal.ts";
import { sessionLabelled } from "../own-facts/session-facts.ts";
import type { UpstreamConnection } from "./connection.ts";

/** Records labels that have changed. Returns how many events have been added in total by then; 0 if nothing is recorded. */
export function recordLabels(
  journal: SourceJournal,
  { session }: Pick<UpstreamConnection, "session">,
  labelled: Labelled,
  at: Timestamp,
): number {
  // The tap pushes the item again if it does not know that it was recorded.
  if (session === "" || journal.history.hasLabels(session, at)) return 0;
  return journal.publish([journal.own(session, sessionLabelled(labelled), at)]);
}
