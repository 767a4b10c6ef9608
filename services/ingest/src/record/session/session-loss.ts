import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments } from "@tapedeck/shared/time/moment";
import type { Numbered } from "../frames/numbering.ts";
import type { Book } from "../journal/source-journal.ts";
import { sessionGap } from "../own-facts/gap-facts.ts";
import { sessionEnded, sessionLost } from "../own-facts/session-facts.ts";

export type Loss = {
  readonly session: string;
  readonly reason: string;
  /** The last moment at which somebody listened. */
  readonly since: Moment | undefined;
  /** The upstream's process is known to be gone; else nothing is known of it. */
  readonly hasEnded?: boolean;
  /** What was missed may still come from the tap that was there. */
  readonly open?: boolean;
};

/** A session whose end nobody saw, nor what it said before: at some time after it was heard last. To be published together. */
export function lossOf(
  book: Book,
  { session, reason, since, hasEnded = false, open = false }: Loss,
  at: Moment,
): Numbered[] {
  const from = since ?? book.history.lastAt ?? at;
  const until = compareMoments(from, at) > 0 ? from : at;
  return [
    book.own(session, sessionGap("", "nobody listened any more", { open }), until, from),
    book.own(session, hasEnded ? sessionEnded(reason) : sessionLost(reason), until, from),
  ];
}
