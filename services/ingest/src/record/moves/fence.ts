import type { LastOfSource } from "@tapedeck/shared/log/log";
import { sourceOfSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import { Numbering, ownChannel } from "../frames/numbering.ts";
import { appendFact } from "../journal/append-fact.ts";
import { LostRaceError, settle } from "../journal/settle.ts";
import { sourceCheckpoint } from "../own-facts/source-facts.ts";
import type { Store } from "../recorder-options.ts";
import { messagesBySubject } from "./held.ts";

/** How many sources are fenced at a time. */
const atOnce = 8;

/**
 * Ends every writer of the workspace's sources, in whatever process: each expects to follow its own last message, and now
 * follows this one. The mark is there already, so no writer begins any more. The first
 * message of a new source may still land; its writer reads the mark before it reports the message.
 */
export async function fenceSources(workspace: string, store: Store, signal: AbortSignal): Promise<void> {
  const sources = new Set<SourceName>();
  for (const [subject] of await messagesBySubject(store.nats, workspace)) {
    const source = sourceOfSubject(subject);
    if (source !== undefined) sources.add(source);
  }
  const left = [...sources];
  const fenceNext = async () => {
    for (let source = left.pop(); source !== undefined; source = left.pop()) await fence(source, store, signal);
  };
  await Promise.all(Array.from({ length: atOnce }, fenceNext));
}

/** Writes without the marks, which refuse everybody else. */
async function fence(source: SourceName, { log }: Store, signal: AbortSignal): Promise<void> {
  const { writer, reader, ends } = log;
  try {
    const fact = sourceCheckpoint();
    return await appendFact({ log: { writer, reader, ends }, source, session: "", fact, signal });
  } catch (cause) {
    if (!(cause instanceof LostRaceError)) throw cause;
  }
  // Somebody writes at this moment, and faster than the source's history is read. The last message is enough then: it
  // is new, so no text that came after it has expired.
  for (;;) {
    signal.throwIfAborted();
    const last = await writer.lastOf(source);
    try {
      await settle(
        { log: writer, source, writer: ulid() },
        { events: [checkpointAfter(source, last)] },
        last?.seq ?? 0,
        signal,
      );
      return;
    } catch (cause) {
      if (!(cause instanceof LostRaceError)) throw cause;
    }
  }
}

function checkpointAfter(source: SourceName, last: LastOfSource | undefined) {
  const cursor = last?.mark.cursor;
  const channels = Object.keys(cursor?.ordinals ?? {}).filter((channel) => channel !== ownChannel);
  const life = cursor?.textTtl === undefined ? undefined : { textTtl: cursor.textTtl, channels };
  return new Numbering(source, cursor, life).own("", sourceCheckpoint(), { observedAt: timestampNow() }).written;
}
