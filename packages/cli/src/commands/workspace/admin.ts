import type { ListedWorkspace, RemovingWorkspace, WorkspaceRetention } from "../../maintain/remote.ts";

/** What admins do with workspaces, here or elsewhere. Everything throws CommandError. */
export type WorkspaceAdmin = AsyncDisposable & {
  list(): Promise<readonly ListedWorkspace[]>;
  get(name: string): Promise<ListedWorkspace>;
  remove(name: string, signal: AbortSignal): AsyncIterable<RemovingWorkspace>;
  setRetention(name: string, retention: ChangedRetention): Promise<WorkspaceRetention>;
};

/** A duration, "forever" or "default". */
export type ChangedRetention = { readonly facts?: string | undefined; readonly text?: string | undefined };
