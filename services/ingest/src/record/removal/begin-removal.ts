import { type JetStreamManager, jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import type { CallerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { knownEnds } from "@tapedeck/shared/log/known-ends";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { isRemoving, type Removal, WorkspaceStore } from "@tapedeck/shared/log/workspaces/workspace-store";
import { shortList } from "@tapedeck/shared/output/short-list";
import { delay } from "@tapedeck/shared/sync/delay";
import { notReady } from "../push-errors.ts";
import type { Stores } from "../recorder-options.ts";

export type RemovalRequested = {
  readonly workspace: string;
  /** The caller, for the audit log. */
  readonly who: string;
  readonly kind: CallerKind;
  readonly by?: string | undefined;
};

/**
 * Begins the removal of a workspace, which an ingest then finishes by itself. A repeated call returns the removal that is
 * under way or has ended, unless something was recorded there again.
 * @throws TapedeckError not_found; invalid_argument while something is recorded there. Rejects when NATS can't be asked
 */
export async function beginRemoval(requested: RemovalRequested, { nats, leases }: Stores): Promise<Removal> {
  const { workspace, who, kind, by } = requested;
  const store = new WorkspaceStore(nats);
  const known = await store.removalOf(workspace);
  if (known !== undefined && isRemoving(known)) return known;
  const jsm = await jetstreamManager(nats, { timeout: 2_000, checkAPI: false });
  const isThere = (await logOf(jsm, workspace)) !== undefined || (await knownEnds(jsm, workspace)).length > 0;
  if (!isThere && known?.state === "done") return known;
  if (!isThere) {
    const message = `nothing is recorded in the workspace "${workspace}"`;
    throw new TapedeckError("not_found", message, { field: "workspace" });
  }
  const reason = await recordedIn(workspace, leases);
  if (reason !== undefined) throw refused(reason);
  const began = new Date().toISOString();
  return await store.begin({ workspace, began, who, kind, ...(by !== undefined && { by }) });
}

/** Undefined: the workspace has none. */
export async function logOf(jsm: JetStreamManager, workspace: string): Promise<StreamInfo | undefined> {
  try {
    return await jsm.streams.info(streamOf(workspace));
  } catch (cause) {
    if ((cause as Error).name !== "StreamNotFoundError") throw cause;
    return undefined;
  }
}

/** Why a workspace can't be removed now; undefined: nobody records there. */
export async function recordedIn(workspace: string, leases: Stores["leases"]): Promise<string | undefined> {
  const sources = await leases.ownedIn(workspace);
  if (sources.length === 0) return undefined;
  const [what, it] = sources.length === 1 ? ["is", "it"] : ["are", "them"];
  return `${shortList(sources)} ${what} being recorded: end ${it} first`;
}

function refused(reason: string): TapedeckError {
  return invalidArgument(reason, "workspace");
}

/** How often the progress is read. */
const followMs = 50;

/**
 * Yields the progress of a removal when it has changed, and at its end. Rejects when NATS can't be asked.
 * @throws TapedeckError invalid_argument when a recording has begun meanwhile
 */
export async function* followRemoval(
  workspace: string,
  { nats, signal }: Pick<Stores, "nats"> & { readonly signal: AbortSignal },
): AsyncGenerator<Removal, void> {
  const store = new WorkspaceStore(nats);
  let last: Removal["state"] | undefined;
  while (!signal.aborted) {
    const removal = await store.removalOf(workspace).catch((cause: unknown) => {
      throw notReady("the log does not answer", cause);
    });
    if (removal === undefined) return;
    if (removal.state === "refused") throw refused(removal.reason ?? "it is being recorded");
    if (removal.state !== last) yield removal;
    last = removal.state;
    if (removal.state === "done") return;
    await delay(followMs, signal);
  }
}
