import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { backUpLog, type Snapshot } from "@tapedeck/shared/log/backup";
import { type SinkBackup, SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { backupOf, openTokenStore, type TokenBackup } from "@tapedeck/shared/tokens/store";
import { z } from "zod";
import type { CallContext, Caller } from "../../call-context.ts";
import type { RebuildProgress } from "../../maintain-client.ts";
import { one, text } from "../tapedeck/parameter-schemas.ts";
import { beginErasure, type EraseProgress, type ErasureDeps } from "./erasing.ts";
import { beginDeveloperErasure, type DeveloperErasureDeps, type EraseDeveloperProgress } from "./erasing-developer.ts";
import { assertEverywhere, assertSees, seesAll } from "./everywhere.ts";
import { pieces } from "./pieces.ts";
import { inPlace, Tasks } from "./tasks.ts";
import {
  type ListDeps,
  type ListedWorkspace,
  listWorkspaces,
  type WorkspaceRetention,
} from "./workspaces/list-workspaces.ts";
import { beginRemoval, type RemovalProgress } from "./workspaces/remove-workspace.ts";
import { setRetention } from "./workspaces/set-retention.ts";

export const backupParameters = z.strictObject({
  workspace: one(text("shop-team"), "Only the log of this workspace."),
});

/** Maintenance by admins. Everything throws TapedeckError. */
export type MaintainApi = {
  /**
   * Begins to remove a session of the caller's workspace for good, and yields how far that is until it is over. It goes on
   * when the caller leaves; the same call again finds it under way or done. Nothing of the session is readable any more, in the
   * log or in the tables, when this resolves, unless query is away: its tables follow when it is back.
   */
  erase(session: string, context: CallContext): Promise<AsyncIterable<EraseProgress>>;
  /**
   * Begins to remove everything of a developer of the caller's workspace, and yields how far that is until it is over. It goes
   * on when the caller leaves; the same call again finds it under way or done.
   */
  eraseDeveloper(developer: string, context: CallContext): Promise<AsyncIterable<EraseDeveloperProgress>>;
  /**
   * Rebuilds the tables of all workspaces; yields the progress. `fresh`: does not continue an earlier rebuild, which may
   * have what was removed from the log since.
   */
  rebuild(context: CallContext, how?: { readonly fresh: boolean }): Promise<AsyncIterable<RebuildProgress>>;
  /** The logs of all workspaces, or of one, each as of a moment, and at the end the tokens and the sinks, with their secrets. */
  backUp(context: CallContext, of?: { readonly workspace?: string | undefined }): Promise<AsyncIterable<BackupPart>>;
  /** The workspaces that the caller sees: all, or its own. */
  workspaces(context: Caller): Promise<{ readonly items: readonly ListedWorkspace[] }>;
  workspace(name: string, context: Caller): Promise<ListedWorkspace>;
  /**
   * Begins to remove a workspace, and yields how far that is until it is over. It goes on when the caller leaves; the same call
   * again finds it under way or done.
   */
  removeWorkspace(name: string, context: CallContext): Promise<AsyncIterable<RemovalProgress>>;
  /** `body`: see retentionRequest. */
  setRetention(name: string, body: unknown, context: CallContext): Promise<WorkspaceRetention>;
};

/** A log begins with `log`, has its pieces, and ends with the data that restores it. */
export type BackupPart =
  | { readonly type: "log"; readonly workspace: string }
  | { readonly type: "piece"; readonly bytes: Uint8Array }
  | { readonly type: "snapshot"; readonly snapshot: Snapshot }
  | { readonly type: "end"; readonly tokens: TokenBackup; readonly sinks: SinkBackup };

export type MaintainDeps = ErasureDeps &
  DeveloperErasureDeps &
  ListDeps & {
    /** The workspaces that have a log. */
    readonly workspaces: () => Promise<readonly string[]>;
    readonly audit: (what: "tables rebuilt" | "log backed up", by: Caller, about: AuditEntry["about"]) => void;
  };

export function maintainApi({
  query,
  services,
  nats,
  workspaces,
  auditStore,
  tokens,
  audit,
}: MaintainDeps): MaintainApi {
  const tasks = new Tasks();
  /** In one of the places of erasures. */
  const erasing = async <T>(begin: () => Promise<AsyncIterable<T>>, signal: AbortSignal) => {
    const leave = tasks.place("erase", signal);
    try {
      return inPlace(await begin(), leave);
    } catch (error) {
      leave();
      throw error;
    }
  };
  return {
    ...workspaceCalls({ query, services, nats }, tasks),

    erase: (session, context) =>
      erasing(() => beginErasure({ query, services, auditStore }, session, context), context.signal),

    eraseDeveloper: (developer, context) =>
      erasing(() => beginDeveloperErasure({ services, tokens }, developer, context), context.signal),

    async rebuild(context, { fresh } = { fresh: false }) {
      assertEverywhere(context);
      const progress = async function* () {
        audit("tables rebuilt", context, {});
        yield* services.rebuild({ workspace: "", fresh }, context.signal);
      };
      return tasks.begin("rebuild", progress(), context.signal);
    },

    async backUp(context, { workspace } = {}) {
      assertEverywhere(context);
      const { connection } = nats();
      const all = await workspaces();
      if (workspace !== undefined && !all.includes(workspace)) {
        throw new TapedeckError("not_found", `nothing is recorded in the workspace "${workspace}"`, {
          field: "workspace",
        });
      }
      const parts = async function* (): AsyncGenerator<BackupPart, void> {
        audit("log backed up", context, { ...(workspace !== undefined && { workspace }) });
        for (const one of workspace === undefined ? all : [workspace]) {
          yield { type: "log", workspace: one };
          const made = pieces((take) => backUpLog(connection, one, take), context.signal);
          for await (const bytes of made.stream) yield { type: "piece", bytes };
          if (context.signal.aborted) return;
          yield { type: "snapshot", snapshot: await made.result };
        }
        const tokens = backupOf(await (await openTokenStore(connection)).read());
        yield { type: "end", tokens, sinks: await new SinkStore(connection).backUp(workspace) };
      };
      return tasks.begin("backUp", parts(), context.signal);
    },
  };
}

function workspaceCalls(
  deps: Pick<MaintainDeps, "query" | "services" | "nats">,
  tasks: Tasks,
): Pick<MaintainApi, "workspaces" | "workspace" | "removeWorkspace" | "setRetention"> {
  return {
    async workspaces(caller) {
      return { items: await listWorkspaces(deps, seesAll(caller) ? undefined : caller.workspace) };
    },
    async workspace(name, caller) {
      assertSees(name, caller);
      const [found] = await listWorkspaces(deps, name);
      if (found !== undefined) return found;
      throw new TapedeckError("not_found", `nothing is recorded in the workspace "${name}"`, { field: "workspace" });
    },
    async removeWorkspace(name, context) {
      assertSees(name, context);
      const leave = tasks.place("removeWorkspace", context.signal);
      try {
        return inPlace(await beginRemoval(deps, name, context), leave);
      } catch (error) {
        leave();
        throw error;
      }
    },
    async setRetention(name, body, context) {
      assertSees(name, context);
      return setRetention(deps.services, name, body, context);
    },
  };
}
