import { logStart } from "@tapedeck/shared/log/offset";
import { sql } from "kysely";
import { assertOfThisLog } from "../db/checkpoint.ts";
import { type Database, internalSchema, liveSchema, openDatabase, type Tx } from "../db/database.ts";
import { takeTables } from "../db/lock.ts";
import { noSwapUntilCommit } from "../db/read.ts";
import { columnTypes } from "../db/schema.generated.ts";
import type { CheckpointRow } from "../db/schema.ts";
import { ensurePartitions } from "../views/events/partitions.ts";
import { keepTotals } from "../views/totals/kept-totals.ts";
import { DependantsError } from "./dependants.ts";
import { foreignKeysToTables } from "./forget/tables.ts";
import { project } from "./project.ts";
import { type LogToRead, liveCheckpoints, logOf, prepare, type Rebuild, readAnew } from "./rebuild.ts";
import { dropSchemas, shadowSchema } from "./swap.ts";

export type RebuildWorkspace = Omit<Rebuild, "fill" | "onUnfilled"> & { readonly workspace: string };

/**
 * Builds the tables of one workspace again beside the live ones. When they have caught up, their rows replace its live ones
 * in one transaction. The live tables of all workspaces keep answering and following meanwhile. Resolves as rebuild does.
 * @throws DependantsError while foreign keys of others refer to the tables
 * @throws AlreadyProjectedError, ForeignCheckpointError as rebuild does
 */
export async function rebuildWorkspace(options: RebuildWorkspace): Promise<boolean> {
  const { databaseUrl, workspace, logs, views, limits, signal, onProgress = () => {} } = options;
  await using shadow = openDatabase({ url: databaseUrl, schema: shadowSchema, connections: 3 });
  await using live = openDatabase({ url: databaseUrl, connections: 1 });
  await assertNoForeignKeys(databaseUrl);
  const known = (await liveCheckpoints(shadow)).find((one) => one.workspace === workspace && !one.removed);
  const log = await (known === undefined ? logs.of(workspace) : logOf(logs, known));
  if (known !== undefined) await assertOfThisLog(known, log);
  const bounds = await log.bounds();
  const read: LogToRead = { workspace, log, bounds };
  await using tables = await takeTables(shadow);
  await prepare(shadow, [read], options);
  options.onBegun?.([read]);
  const work = project({
    connection: tables.pipelines.lane(),
    workspace,
    log: readAnew(log, bounds.lastOffset),
    views,
    signal: AbortSignal.any([signal, tables.lost]),
    ...(limits && { limits }),
  });
  for await (const applied of work) {
    onProgress({ workspace, ...applied });
    if (logs.isRemoved(workspace, log.epoch)) return false;
    if (applied.position < bounds.lastOffset || !(await replaceRows(live, workspace))) continue;
    await dropSchemas(shadow, shadowSchema);
    return true;
  }
  tables.lost.throwIfAborted();
  return false;
}

/** A row that is replaced is deleted, and with it what refers to it, or it can't be. */
async function assertNoForeignKeys(databaseUrl: string): Promise<void> {
  const keys = await foreignKeysToTables(databaseUrl);
  if (keys.length === 0) return;
  throw new DependantsError(
    `the rows of one workspace can't be replaced while foreign keys refer to the tables (${keys.join(", ")}): drop them, or rebuild the tables of all workspaces.`,
  );
}

type TableColumns = Readonly<Record<string, string>>;
/** The log no longer has what it counts. */
const expired = "expired_builds";
/** Its figures never fall. */
const totals = "operation_totals";
/** Triggers make their rows from those of other tables. */
const derived = ["build_months", "red_times", "changed_build_days", "build_days"];
const tables = Object.entries<TableColumns>(columnTypes).filter(
  ([name]) =>
    name !== "checkpoint" && name !== "workspaces" && name !== expired && name !== totals && !name.startsWith("kysely"),
);

/** False: the live tables are ahead of the new ones. */
async function replaceRows({ db }: Database, workspace: string): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    await noSwapUntilCommit(tx);
    const before = await lockRows(tx, liveSchema, workspace);
    const after = await lockRows(tx, shadowSchema, workspace);
    if (after === undefined || (before?.position ?? logStart) > after.position) return false;
    await ensurePartitions(tx, await months(tx, workspace));
    // What has rows of sessions alone goes before the sessions.
    for (const [name, columns] of tables.toSorted(([one], [other]) => Number(isKept(one)) - Number(isKept(other))))
      await sql`delete from ${sql.table(name)} t where ${ownRows(columns, workspace, liveSchema)}`.execute(tx);
    for (const [name, columns] of tables.filter(([one]) => !derived.includes(one))) {
      const names = sql.join(Object.keys(columns).map((column) => sql.ref(column)));
      await sql`
        insert into ${sql.table(name)} (${names}) select ${names} from ${sql.table(await inShadow(tx, name))} t
        where ${ownRows(columns, workspace, shadowSchema)}`.execute(tx);
    }
    await sql`
      insert into ${sql.table(expired)} select * from ${sql.table(await inShadow(tx, expired))} where workspace = ${workspace}
      on conflict do nothing`.execute(tx);
    await keepTotals(tx, shadowSchema, liveSchema, workspace);
    await putCheckpoint(tx, after);
    return true;
  });
}

const isKept = (name: string) => name === "sessions" || derived.includes(name);

/** The rows of table `t` that belong to the workspace. */
function ownRows(columns: TableColumns, workspace: string, schema: string) {
  if ("workspace" in columns) return sql`t.workspace = ${workspace}`;
  if ("source" in columns) return sql`split_part(t.source, '/', 1) = ${workspace}`;
  return sql`t.session in (select session from ${sql.table(`${schema}.sessions`)} where workspace = ${workspace})`;
}

async function inShadow(tx: Tx, name: string): Promise<string> {
  const { rows } = await sql<{ schema: string }>`
    select nspname as schema from pg_class c join pg_namespace n on n.oid = relnamespace
    where relname = ${name} and nspname = any(${[shadowSchema, internalSchema(shadowSchema)]}::text[])`.execute(tx);
  return `${rows[0]?.schema ?? shadowSchema}.${name}`;
}

/** The checkpoint of the workspace, which no batch moves until the transaction ends. */
async function lockRows(tx: Tx, schema: string, workspace: string): Promise<CheckpointRow | undefined> {
  const { rows } = await sql<CheckpointRow>`
    select * from ${sql.table(`${internalSchema(schema)}.checkpoint`)}
    where workspace = ${workspace} and not removed for update`.execute(tx);
  return rows[0];
}

/** A timestamp of each month that has events. */
async function months(tx: Tx, workspace: string): Promise<readonly string[]> {
  const { rows } = await sql<{ month: string }>`
    select distinct to_char(recorded_at at time zone 'UTC', 'YYYY-MM') as month
    from ${sql.table(`${shadowSchema}.events`)} where workspace = ${workspace}`.execute(tx);
  return rows.map(({ month }) => month);
}

async function putCheckpoint(tx: Tx, checkpoint: CheckpointRow): Promise<void> {
  await tx
    .insertInto("checkpoint")
    .values(checkpoint)
    .onConflict((conflict) => conflict.column("workspace").doUpdateSet(checkpoint))
    .execute();
  const { workspace, epoch } = checkpoint;
  await sql`
    insert into workspaces (workspace, epoch) values (${workspace}, ${epoch})
    on conflict (workspace) do update set epoch = excluded.epoch`.execute(tx);
}
