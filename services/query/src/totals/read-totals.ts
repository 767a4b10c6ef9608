import { sql } from "kysely";
import type { Database } from "../db/database.ts";
import { bucketColumns, figures } from "../views/totals/buckets.ts";
import { allProjects } from "../views/totals/totals.ts";

/** A total is known by these. `project` is allProjects for the sums of a workspace. */
export type TotalKey = Readonly<Record<"workspace" | "project" | "kind" | "outcome" | "phase", string>>;

export type Total = TotalKey & {
  readonly count: number;
  /** Those whose duration is known, which the members after it are about. */
  readonly timed: number;
  readonly sumMs: number;
  /** How many took at most so long, by bucketBounds. */
  readonly buckets: readonly number[];
};

type Row = TotalKey & Readonly<Record<(typeof figures)[number], number>>;

const columns = sql`workspace, project, kind, outcome, phase, ${sql.join(figures.map((name) => sql.ref(name)))}`;

/** The sums of all projects, by workspace. */
export async function workspaceTotals({ db }: Database, workspaces: readonly string[]): Promise<readonly Total[]> {
  const { rows } = await sql<Row>`
    select ${columns} from operation_totals
    where workspace = any(${[...workspaces]}::text[]) and project = ${allProjects} order by 1, 3, 4, 5`.execute(db);
  return rows.map(totalOf);
}

export type UsedProject = {
  readonly workspace: string;
  readonly project: string;
  /** "build succeeded 12,loop failed 3": one text is read in a fraction of the time that rows take. */
  readonly counts: string;
  /** How many of its rows have durations. */
  readonly timed: number;
  /** How many projects there are in all. */
  readonly all: number;
};

/** The counts of the projects that were used last, of all these workspaces; the last one first. */
export async function usedProjects(
  { db }: Database,
  workspaces: readonly string[],
  limit: number,
): Promise<readonly UsedProject[]> {
  const { rows } = await sql<UsedProject>`
    select workspace, project, count(*) filter (where ${isTimed}) as timed, count(*) over () as all,
      coalesce(string_agg(kind || ' ' || outcome || ' ' || count, ',') filter (where kind <> 'wait'), '') as counts
    from operation_totals where workspace = any(${[...workspaces]}::text[]) and project <> ${allProjects}
    group by 1, 2 order by max(last_at) desc, 1, 2 limit ${limit}`.execute(db);
  return rows;
}

/** What was canceled says nothing about how long something takes. */
const isTimed = sql`timed > 0 and outcome in ('', 'succeeded', 'failed')`;

/** The durations of these projects. */
export async function projectTimes({ db }: Database, projects: readonly UsedProject[]): Promise<readonly Total[]> {
  if (projects.length === 0) return [];
  const [workspaces, names] = (["workspace", "project"] as const).map((name) => projects.map((one) => one[name]));
  const { rows } = await sql<Row>`
    select ${columns} from operation_totals
    where (workspace, project) in (select * from unnest(${workspaces}::text[], ${names}::text[])) and ${isTimed}
    order by 1, 2, 3, 4, 5`.execute(db);
  return rows.map(totalOf);
}

function totalOf(row: Row): Total {
  const { workspace, project, kind, outcome, phase, count, timed } = row;
  const buckets = bucketColumns.map((name) => row[name]);
  return { workspace, project, kind, outcome, phase, count, timed, sumMs: row.sum_ms, buckets };
}
