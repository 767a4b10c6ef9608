import type { WorkspacesRequest, WorkspacesResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { logStart } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import { readConsistently } from "../../db/read.ts";
import type { CheckpointRow } from "../../db/schema.ts";
import type { ApiDeps } from "../deps.ts";

type CountedWorkspace = Pick<CheckpointRow, "workspace" | "epoch" | "position" | "removed"> & {
  readonly sources: number;
  readonly events: number;
};

type WorkspacesOptions = {
  /** Why a workspace is not projected now; empty: it is. */
  readonly waitsFor: (workspace: string) => string;
  /** This query's name; empty: the default one. */
  readonly name: string;
};

export function workspaces({ waitsFor, name: query }: WorkspacesOptions) {
  return async ({ database }: ApiDeps, { workspace }: WorkspacesRequest): Promise<WorkspacesResponse> => {
    const which = workspace === "" ? sql`true` : sql`c.workspace = ${workspace}`;
    const rows = await readConsistently(database(), workspace, async (tx) => {
      const read = await sql<CountedWorkspace>`
        select c.workspace, c.epoch, c.position, c.removed,
          (select count(*) from sources s where s.workspace = c.workspace) as sources,
          (select coalesce(sum(events), 0)::bigint from event_blocks b where b.workspace = c.workspace) as events
        from checkpoint c where ${which} order by c.workspace`.execute(tx);
      return read.rows;
    });
    return {
      items: rows.map(({ workspace: name, epoch, position, removed, sources, events }) => ({
        workspace: name,
        position: position === logStart ? "" : formatPosition({ epoch, offset: position }),
        sources: BigInt(sources),
        events: BigInt(events),
        waits_for: waitsFor(name),
        removed,
        query,
      })),
    };
  };
}
