import { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { SourceName } from "@tapedeck/shared/source";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps, msBetween, timestampNow } from "@tapedeck/shared/time/timestamp";
import type { TextLife } from "../frames/numbering.ts";
import { openSourceJournal, type SourceJournal, type SourceJournalOptions } from "../journal/source-journal.ts";
import { isImport } from "../own-facts/import-facts.ts";
import { upstreamSilent } from "../own-facts/upstream-facts.ts";
import { lossEvents } from "../session/session-loss.ts";

export type SilentSource = {
  readonly log: SourceJournalOptions["log"];
  readonly source: SourceName;
  /** When the last push ended; undefined: before this process began. */
  readonly since: Timestamp | undefined;
  readonly lostAfterMs: number;
  readonly life: TextLife | undefined;
  readonly signal: AbortSignal;
};

export type Examined = {
  /** It is lost, and awaited: it has been silent since. */
  readonly lostSince?: Timestamp;
  /** It has to be examined again, after this time or the usual one. */
  readonly again?: { readonly ms?: number };
  /** Another ingest recorded or examined it at this moment. */
  readonly elsewhere?: Timestamp;
};

/** The known facts about a source when it is examined. */
export type LastSeen = {
  /** When it was last heard from, as far as this process knows; undefined: before this process began. */
  readonly since: Timestamp | undefined;
  /** That was by another ingest. */
  readonly elsewhere: boolean;
};

/**
 * Records that a source is silent, and ends its session after too long a silence: how and when it ended is unknown. The
 * writer's place must be ours. Rejects when the signal aborts.
 */
export async function examineSilent({ lostAfterMs, since, ...opening }: SilentSource): Promise<Examined> {
  const nothing = { onAcknowledged: () => {}, onPublishFailure: () => {} };
  await using journal = await openSourceJournal({ ...opening, ...nothing, hello: Hello.create() });
  const { connection, session } = journal.history;
  // One that was broken off can be begun again, whenever.
  if (connection === undefined || isImport(connection)) return {};
  const now = timestampNow();
  await recordSilence(journal, since, now);
  if (!session?.open) return {};
  // The reporter's clock may be ahead of ours, and the wait must not exceed the setting.
  const lostSince = earlier(connection.silentSince ?? since ?? connection.lostAt ?? now, now);
  const left = lostAfterMs - msBetween(lostSince, now);
  if (left > 0) return { lostSince, again: { ms: left } };
  const loss = { session: session.id, reason: "nothing more was received from it", since: lostSince, open: true };
  await journal.writer.reached(journal.publish(lossEvents(journal, loss, now)));
  return {};
}

async function recordSilence(journal: SourceJournal, since: Timestamp | undefined, now: Timestamp): Promise<void> {
  const { connection, lastAt = now } = journal.history;
  if (connection === undefined || connection.lost || connection.silentSince !== undefined) return;
  const from = earlier(since ?? lastAt, now);
  const { id, address, session } = connection;
  const fact = upstreamSilent({ connection: id, address });
  await journal.writer.reached(journal.publish([journal.own(session, fact, now, from)]));
}

function earlier(one: Timestamp, other: Timestamp): Timestamp {
  return compareTimestamps(one, other) > 0 ? other : one;
}
