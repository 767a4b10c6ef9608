import { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { SourceName } from "@tapedeck/shared/source";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../normalize/fact.ts";
import { openSourceJournal, type SourceJournalOptions } from "./source-journal.ts";

export type AppendFactOptions = Pick<SourceJournalOptions, "log" | "signal"> & {
  readonly source: SourceName;
  /** Empty for a fact about the source. */
  readonly session: string;
  readonly fact: Fact;
};

/**
 * Adds one fact of Tapedeck's own to a source that is not being recorded here. Resolves when it is in the log. A
 * recorder elsewhere that is writing the source notices, reads the log again and continues.
 * @throws LostRaceError if that recorder was faster
 */
export async function appendFact({ source, session, fact, ...options }: AppendFactOptions): Promise<void> {
  const unused = { hello: Hello.create({}), onAcknowledged: () => {}, onPublishFailure: () => {} };
  await using journal = await openSourceJournal({ ...options, ...unused, source });
  await journal.writer.reached(journal.publish([journal.own(session, fact, timestampNow())]));
}
