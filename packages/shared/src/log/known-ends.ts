import type { JetStreamManager } from "@nats-io/jetstream";
import { z } from "zod";
import { isForbidden } from "./cluster/replicas.ts";
import type { Sequence } from "./offset.ts";
import { endSubjects, endsStream } from "./subjects.ts";
import { removedEpochs } from "./workspaces/workspace-store.ts";

/** How far a log had come, by one source's end or by query's tables. */
export type KnownEnd = { readonly epoch: string; readonly seq: Sequence };

const endSchema = z.looseObject({ epoch: z.string(), seq: z.number() });

/**
 * What is kept beside a workspace's log of logs that had events, one entry for each epoch, with the furthest end. Empty where
 * nothing is kept, or this user may not read it: such a user may not create a log, either. Logs that were removed with their
 * workspace don't count. Rejects when NATS can't be asked.
 */
export async function knownEnds(jsm: JetStreamManager, workspace: string): Promise<readonly KnownEnd[]> {
  const furthest = new Map<string, Sequence>();
  // The ends of sources and of tables are of events; where a log begins says nothing of any.
  const { tables, sources } = endSubjects(workspace);
  try {
    for (const next_by_subj of [tables, sources]) {
      for (let seq = 1; ; ) {
        const query = { seq, next_by_subj };
        const message = await jsm.streams.getMessage(endsStream, query);
        if (message === null) break;
        seq = message.seq + 1;
        const end = endIn(message.data);
        if (end !== undefined) furthest.set(end.epoch, Math.max(end.seq, furthest.get(end.epoch) ?? 0));
      }
    }
  } catch (cause) {
    if (!isForbidden(cause) && (cause as Error).name !== "StreamNotFoundError") throw cause;
  }
  const found = [...furthest].flatMap(([epoch, seq]) => (seq > 0 ? [{ epoch, seq }] : []));
  if (found.length === 0) return [];
  // An ingest that did not know yet may have written an end after the removal.
  const removed = await removedEpochs(jsm, workspace);
  return found.filter(({ epoch }) => !removed.includes(epoch));
}

/** Undefined for a source that is gone, and where the file is damaged. */
function endIn(data: Uint8Array): KnownEnd | undefined {
  try {
    return endSchema.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return undefined;
  }
}
