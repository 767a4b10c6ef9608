import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { plannedOnce } from "../../db/pipeline.ts";
import { loops } from "../loops/loops.ts";
import { operations } from "../operations/operations.ts";
import type { BatchContext, EndedOperation, View } from "../view.ts";
import { bucketBounds, figures } from "./buckets.ts";

/** The kinds of operations that /metrics counts. */
export const countedKinds: ReadonlySet<string> = new Set(["loop", "build", "test", "deploy", "command"]);

/** The project of the rows that have the sums of all projects. No name of one is empty. */
export const allProjects = "";

/**
 * Sums for /metrics, by project and by workspace (docs/decisions/0078). They only grow: what ended is counted once, whatever is
 * said about it later. Those of erased sessions stay, so the view has no rows of sessions.
 */
export const totals: View = {
  name: "totals",
  version: 1,
  sessionTables: [],
  after: [operations, loops],
  async apply(tx, _batch, { ended, waited }) {
    await add(tx, [...added({ ended, waited }).values()]);
  },
};

/** What a batch adds to a row of operation_totals. */
type Addition = {
  readonly workspace: string;
  readonly project: string;
  readonly kind: string;
  readonly outcome: string;
  readonly phase: string;
  count: number;
  timed: number;
  sum_ms: number;
  /** Cumulative, by bound. */
  readonly buckets: number[];
  lastAt: Date;
};

function added({ ended, waited }: Pick<BatchContext, "ended" | "waited">): ReadonlyMap<string, Addition> {
  const all = new Map<string, Addition>();
  for (const { row, recordedAt } of ended.filter(({ row }) => isCounted(row))) {
    const outcome = row.cache_hit ? "cached" : (row.outcome ?? "");
    const { workspace, project, kind } = row;
    count(all, { workspace, project, kind, outcome, phase: "" }, row.duration_ms, recordedAt);
  }
  for (const { row, recordedAt, waits } of waited) {
    const { workspace, project } = row;
    for (const [phase, ms] of waits)
      count(all, { workspace, project, kind: "wait", outcome: "", phase }, ms, recordedAt);
  }
  return all;
}

/** A build without a subject is one of all artifacts, that failed before any began. */
function isCounted({ kind, subject, injected }: EndedOperation["row"]): boolean {
  return countedKinds.has(kind) && !injected && !(kind === "build" && subject === "");
}

type Key = Pick<Addition, "workspace" | "project" | "kind" | "outcome" | "phase">;

function count(all: Map<string, Addition>, key: Key, ms: number | null, recordedAt: Date): void {
  for (const project of [key.project, allProjects]) addOne(all, { ...key, project }, ms, recordedAt);
}

function addOne(all: Map<string, Addition>, key: Key, ms: number | null, recordedAt: Date): void {
  const name = Object.values(key).join("\0");
  const known = all.get(name);
  const row = known ?? {
    ...key,
    count: 0,
    timed: 0,
    sum_ms: 0,
    buckets: bucketBounds.map(() => 0),
    lastAt: recordedAt,
  };
  if (known === undefined) all.set(name, row);
  row.count += 1;
  if (recordedAt > row.lastAt) row.lastAt = recordedAt;
  if (ms === null) return;
  row.timed += 1;
  row.sum_ms += ms;
  for (const [index, bound] of bucketBounds.entries())
    if (ms <= bound) row.buckets[index] = (row.buckets[index] ?? 0) + 1;
}

const keys = ["workspace", "project", "kind", "outcome", "phase"] as const;
const names = sql.join([...keys, ...figures, "last_at"].map((name) => sql.ref(name)));

async function add(tx: Tx, rows: readonly Addition[]): Promise<void> {
  if (rows.length === 0) return;
  const texts = keys.map((key) => sql`${rows.map((row) => row[key])}::text[]`);
  const numbers = [
    ...(["count", "timed", "sum_ms"] as const).map((name) => rows.map((row) => row[name])),
    ...bucketBounds.map((_, index) => rows.map(({ buckets }) => buckets[index] ?? 0)),
  ].map((column) => sql`${column}::bigint[]`);
  const times = sql`${rows.map(({ lastAt }) => lastAt.toISOString())}::timestamptz[]`;
  const sums = figures.map((name) => sql`${sql.ref(name)} = t.${sql.ref(name)} + excluded.${sql.ref(name)}`);
  await sql`${plannedOnce}
    insert into operation_totals as t (${names})
    select * from unnest(${sql.join([...texts, ...numbers, times])})
    on conflict (${sql.join(keys.map((key) => sql.ref(key)))}) do update
      set ${sql.join(sums)}, last_at = greatest(t.last_at, excluded.last_at)`.execute(tx);
}
