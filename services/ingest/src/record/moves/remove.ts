import { eventsIn, sessionOf } from "@tapedeck/shared/log/batch";
import { logStart, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import { sourceParts } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import { removeMessage } from "../maintain/erase-session.ts";
import { removalPace } from "../maintain/removal-pace.ts";
import type { Store } from "../recorder-options.ts";

/** How many messages are removed at a time while nobody may write to the workspace. */
const atOnce = 16;

/**
 * Removes the workspace from the log and forgets how far its sources had come; yields how many messages are gone. One by
 * one, because the user of ingest may not purge the log.
 */
export async function* removeWorkspace(
  workspace: string,
  { nats, log }: Store,
  signal: AbortSignal,
): AsyncGenerator<number, void> {
  const { lastOffset } = await log.reader.bounds();
  const range = { first: 1, last: sequenceOf(lastOffset), subjects: [workspaceFilter(workspace)] };
  let removed = 0;
  let chunk: Sequence[] = [];
  for await (const { seq } of log.stored(range, signal)) {
    if (chunk.push(seq) < 1_000) continue;
    await remove(nats, chunk, signal);
    removed += chunk.length;
    chunk = [];
    yield removed;
  }
  await remove(nats, chunk, signal);
  if (signal.aborted) return;
  await log.ends?.forget((source) => sourceParts(source).workspace === workspace);
  yield removed + chunk.length;
}

/**
 * Removes the sessions that were erased in the other shard while they were copied: their marks came along. Nobody else may
 * write to the workspace yet. Rejects when the signal aborts.
 */
export async function removeErased(workspace: string, { nats, log }: Store, signal: AbortSignal): Promise<void> {
  const { lastOffset } = await log.reader.bounds();
  const subjects = [`${workspaceFilter(workspace).slice(0, -1)}*.*.*.tapedeck.session`];
  const marks = new Map<string, Sequence>();
  for await (const { event, offset } of log.reader.history({ afterOffset: logStart, subjects }, lastOffset, signal)) {
    if (event.kind === "session.erased") {
      marks.set(event.subject || event.session, sequenceOf(offset));
    }
  }
  // Both here and below: what was not found, or not removed, would stay for ever.
  signal.throwIfAborted();
  if (marks.size === 0) return;
  const range = { first: 1, last: sequenceOf(lastOffset), subjects: [workspaceFilter(workspace)] };
  const erased: Sequence[] = [];
  for await (const { seq, data } of log.stored(range, signal)) {
    const [first] = eventsIn(data);
    const session = first === undefined ? undefined : sessionOf(first);
    // What follows the mark was imported anew.
    if (session && seq < (marks.get(session) ?? 0)) erased.push(seq);
  }
  // Without the pace: the workspace is closed until they are gone.
  const left = erased.values();
  const removeNext = async () => {
    for (const seq of left) {
      if (signal.aborted) return;
      await removeMessage(nats, seq);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, removeNext));
  signal.throwIfAborted();
}

/** The oldest first, at the pace of all removals. */
async function remove(nats: NatsConnection, sequences: readonly Sequence[], signal: AbortSignal): Promise<void> {
  for (const seq of sequences) await removalPace.step(() => removeMessage(nats, seq), signal);
}
