import type { NatsConnection } from "nats";
import { retried } from "../../sync/retried.ts";
import {
  entriesIn,
  type Removal,
  type Retention,
  type WorkspaceEntry,
  WorkspaceStore,
  workspaceEntries,
} from "./workspace-store.ts";

/** What is known of workspaces beside their logs, as of now. */
export type WatchedWorkspaces = {
  removalOf(workspace: string): Removal | undefined;
  /** The removals that are under way, or have ended in the last 90 days. */
  removals(): readonly Removal[];
  retentionOf(workspace: string): Retention;
  /** The workspaces that have their own. */
  retentions(): ReadonlyMap<string, Retention>;
  /** Calls `changed` with each removal that begins or advances, until it is disposed. */
  onRemoval(changed: (removal: Removal) => void): Disposable;
};

type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/**
 * Each entry is heard as it is written, and all of them are read at the start and after each time that the connection was
 * lost. Rejects when NATS can't be asked at the start. The connection stays the caller's.
 */
export async function watchWorkspaces(nats: NatsConnection, warn: Warn): Promise<WatchedWorkspaces & Disposable> {
  const store = new WorkspaceStore(nats);
  const removals = new Map<string, Removal>();
  const retentions = new Map<string, Retention>();
  const listeners = new Set<(removal: Removal) => void>();
  const over = new AbortController();
  const take = (entry: WorkspaceEntry) => {
    if (entry.type === "retention") {
      const { workspace, retention } = entry;
      if (Object.keys(retention).length === 0) retentions.delete(workspace);
      else retentions.set(workspace, retention);
      return;
    }
    const { workspace, removal } = entry;
    if (JSON.stringify(removals.get(workspace)) === JSON.stringify(removal)) return;
    removals.set(workspace, removal);
    for (const listener of listeners) listener(removal);
  };
  const subscription = nats.subscribe(workspaceEntries, {
    callback: (err, message) => {
      if (err) return warn("workspaces can't be watched: give this user of NATS its current permissions", { err });
      for (const entry of entriesIn(message)) take(entry);
    },
  });
  const readAll = async () => {
    for (const entry of await store.all()) take(entry);
  };
  const watching = (async () => {
    for await (const { type } of nats.status()) {
      if (over.signal.aborted) return;
      if (type === "reconnect") await retried(readAll, over.signal);
    }
  })();
  watching.catch(() => {});
  try {
    await readAll();
  } catch (cause) {
    subscription.unsubscribe();
    throw cause;
  }
  return {
    removalOf: (workspace) => removals.get(workspace),
    removals: () => [...removals.values()],
    retentionOf: (workspace) => retentions.get(workspace) ?? {},
    retentions: () => retentions,
    onRemoval(changed) {
      listeners.add(changed);
      return { [Symbol.dispose]: () => void listeners.delete(changed) };
    },
    [Symbol.dispose]() {
      over.abort();
      if (!nats.isClosed()) subscription.unsubscribe();
    },
  };
}
