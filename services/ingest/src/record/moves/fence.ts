import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { LogRefusedError } from "@tapedeck/shared/log/jetstream-writer";
import type { LastOfSource, LogWriter } from "@tapedeck/shared/log/log";
import { sourceOfSubject } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import { Numbering } from "../frames/numbering.ts";
import { appendFact } from "../journal/append-fact.ts";
import { LostRaceError, settle } from "../journal/settle.ts";
import { sourceCheckpoint } from "../own-facts/source-facts.ts";
import type { Store } from "../recorder-options.ts";
import { messagesBySubject } from "./held.ts";

/** How many sources are fenced at a time. */
const atOnce = 8;

/** How often the log may refuse a fence: others wait until there is room, but here everybody waits for the fence. */
const maxRefusals = 5;

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
  const { reader, ends } = log;
  const writer = impatient(log.writer, source);
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

function impatient(writer: LogWriter, source: SourceName): LogWriter {
  const { workspace } = sourceParts(source);
  let refusals = 0;
  return {
    ...writer,
    async publish(...args) {
      const published = await writer.publish(...args);
      if (published.outcome !== "refused" || !(published.cause instanceof LogRefusedError)) return published;
      if (++refusals < maxRefusals) return published;
      throw new TapedeckError(
        "not_ready",
        `the log that "${workspace}" leaves accepts no messages (${published.cause.message}), and the workspace is closed: free some space to continue the move, or abandon it there with: nats kv del TAPEDECK_MOVES ${workspace}`,
      );
    },
  };
}

function checkpointAfter(source: SourceName, last: LastOfSource | undefined) {
  const cursor = last?.mark.cursor;
  const channels = Object.keys(cursor?.ordinals ?? {}).filter((channel) => channel !== ownChannel);
  const life = cursor?.textTtl === undefined ? undefined : { textTtl: cursor.textTtl, channels };
  return new Numbering(source, cursor, life).own("", sourceCheckpoint(), { observedAt: timestampNow() }).written;
}
