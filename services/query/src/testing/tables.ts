import { isDeepStrictEqual } from "node:util";
import { sql } from "kysely";
import { type Database, openDatabase } from "../db/database.ts";

const order = {
  checkpoint: "workspace",
  workspaces: "workspace",
  sources: "source",
  sessions: "session",
  events: "workspace, position",
  event_groups: "id",
  event_blocks: "workspace, first_position",
  event_positions: "event_group, subject, block, session, alias",
  operations: "id",
  finished_loops: "id",
  red_times: "loop_id",
  session_labels: "session, at, ns, position",
  loop_labels: "session, runner, loop",
  history: "session, unit",
  failed_outputs: "id",
  build_months: "workspace, month, project, artifact, bucket",
  expired_builds: "workspace, day, session, project, artifact, bucket",
  fold_states: "session",
  snapshots: "session, position",
  skaffold_artifacts: "session, artifact",
  skaffold_phases: "session, phase",
  skaffold_resources: "session, resource",
  skaffold_ports: "session, local_port",
  skaffold_debug_containers: "session, place",
  loop_times: "id",
  build_times: "start_position, session",
  build_times_daily: "workspace, developer, project, artifact, day",
};

/** The tables of rkt's hosts. */
export const rktOrder = {
  operations: "id",
  fold_states: "session",
  snapshots: "session, position",
  history: "session, unit",
  failed_outputs: "id",
  rkt_pods: "session, pod",
  rkt_apps: "session, pod, app",
  rkt_images: "session, image",
  rkt_networks: "session, pod, network",
};

/** The tables of Vagrant's servers. */
export const vagrantOrder = {
  operations: "id",
  fold_states: "session",
  snapshots: "session, position",
  history: "session, unit",
  failed_outputs: "id",
  vagrant_targets: "session, id",
  vagrant_projects: "session, id",
  vagrant_bases: "session, id",
  vagrant_boxes: "session, id",
  vagrant_runners: "session, id",
  vagrant_jobs: "session, job",
  vagrant_job_versions: "session, position",
  vagrant_job_spans: "session, job, first_position",
};

/** All rows of the tables, for comparison. */
export async function contents(
  url: string,
  tables: Readonly<Record<string, string>> = order,
): Promise<Record<string, readonly unknown[]>> {
  await using database = openDatabase({ url, connections: 1 });
  const found: Record<string, readonly unknown[]> = {};
  for (const [table, by] of Object.entries(tables)) found[table] = await rows(database, table, by);
  return found;
}

type Contents = Awaited<ReturnType<typeof contents>>;

/** The first rows in which the tables differ, by table: a whole database is too large to be printed as a difference. */
export function differencesOf(found: Contents, expected: Contents): readonly unknown[] {
  return [...new Set([...Object.keys(expected), ...Object.keys(found)])].flatMap((table) => {
    const [own = [], expectedRows = []] = [found[table], expected[table]];
    const index = expectedRows.findIndex((row, index) => !isDeepStrictEqual(own[index], row));
    if (index === -1 && own.length === expectedRows.length) return [];
    const at = index === -1 ? expectedRows.length : index;
    return [{ table, rows: [own.length, expectedRows.length], at, found: own[at], expected: expectedRows[at] }];
  });
}

export async function rows(
  { db }: Database,
  table: string,
  by = "1",
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return (await sql<Record<string, unknown>>`select * from ${sql.table(table)} order by ${sql.raw(by)}`.execute(db))
    .rows;
}
