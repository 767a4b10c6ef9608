import { jetstreamManager } from "@nats-io/jetstream";
import { layoutOf, type MovedFrom } from "@tapedeck/shared/log/batch";
import { infoOfLeader } from "@tapedeck/shared/log/cluster/leader-info";
import type { Sequence } from "@tapedeck/shared/log/offset";
import { streamName, workspaceFilter } from "@tapedeck/shared/log/subjects";
import type { NatsConnection } from "nats";

const timeoutMs = 2_000;

/** The last message of the workspace in this log, and what it was in the log that it was copied from. */
export type LastCopied = { readonly seq: Sequence; readonly moved: MovedFrom | undefined };

/** From the stream's leader. Rejects when it can't be asked. */
export async function lastCopied(nats: NatsConnection, workspace: string): Promise<LastCopied | undefined> {
  const jsm = await jetstreamManager(nats, { timeout: timeoutMs, checkAPI: false });
  const last = await jsm.streams.getMessage(streamName, { last_by_subj: workspaceFilter(workspace) });
  return last === null ? undefined : { seq: last.seq, moved: layoutOf(last.data).moved };
}

/** How many messages each subject of the workspace has. */
export async function messagesBySubject(
  nats: NatsConnection,
  workspace: string,
): Promise<readonly [subject: string, count: number][]> {
  const jsm = await jetstreamManager(nats, { timeout: timeoutMs, checkAPI: false });
  const { state } = await infoOfLeader(jsm, streamName, { subjects_filter: workspaceFilter(workspace) });
  return Object.entries(state.subjects ?? {});
}

export function holdsOwn(workspace: string): string {
  return `this shard has events of the workspace "${workspace}" that were not moved here: a workspace can't be merged into another`;
}
