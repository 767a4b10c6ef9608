import { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { SourceName } from "@tapedeck/shared/source";
import { momentNow } from "@tapedeck/shared/time/moment";
import type { Fact } from "../../normalize/fact.ts";
import { type BookOptions, openBook } from "./source-journal.ts";

export type SayAlone = Pick<BookOptions, "log" | "signal"> & {
  readonly source: SourceName;
  /** Empty: it is of the source. */
  readonly session: string;
  readonly fact: Fact;
};

/**
 * Adds one fact of Tapedeck's own to a source that nobody is recording here; resolves when it is in the log. A recorder
 * elsewhere that is writing the source just now notices, reads the log again and goes on.
 * @throws LostRaceError when it was faster
 */
export async function sayAlone({ source, session, fact, ...options }: SayAlone): Promise<void> {
  const none = { hello: Hello.create({}), onAcknowledged: () => {}, onTrouble: () => {} };
  await using book = await openBook({ ...options, ...none, source });
  await book.writer.reached(book.publish([book.own(session, fact, momentNow())]));
}
