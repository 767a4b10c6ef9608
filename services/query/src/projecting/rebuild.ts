import type { LogReader } from "@tapedeck/shared/log/log";
import { laterOf, type Offset } from "@tapedeck/shared/log/offset";
import { sql } from "kysely";
import { letReadersIn } from "../db/access/grants.ts";
import { type Database, liveSchema, openDatabase, type Tx } from "../db/database.ts";
import { withTables } from "../db/lock.ts";
import { migrate } from "../db/migrate.ts";
import { swapLock } from "../db/read.ts";
import type { View } from "../views/view.ts";
import { projectionVersion } from "../views/views.ts";
import type { BatchLimits } from "./batches.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { type Projected, project } from "./project.ts";

const shadowSchema = "tapedeck_rebuild";
const retiredSchema = "tapedeck_retired";

export type Rebuild = {
  readonly databaseUrl: string;
  readonly log: LogReader;
  readonly views: readonly View[];
  readonly limits?: BatchLimits;
  /** Begin anew: an earlier rebuild may have what was removed from the log since. */
  readonly fresh?: boolean;
  readonly signal: AbortSignal;
  readonly onProgress?: (applied: Projected) => void;
};

/**
 * Builds all tables again from the log, beside the live ones, and swaps them in when they have caught up. Meanwhile the
 * live tables keep answering, and keep following the log if they can. Continues an earlier rebuild that was killed. A
 * running query need not be notified. Resolves with true at the swap, or with false when the signal ended it before;
 * throws as project does.
 * @throws AlreadyProjectedError when another rebuild runs
 */
export async function rebuild(options: Rebuild): Promise<boolean> {
  const { log, views, signal, onProgress = () => {} } = options;
  await using shadow = openDatabase({ url: options.databaseUrl, schema: shadowSchema, connections: 3 });
  const { lastOffset: goal } = await log.bounds();
  const work = withTables(shadow, async function* (connection, held) {
    await prepare(shadow, options);
    await letReadersIn(shadow);
    yield* project({
      ...{ connection, log: readAnew(log, goal), views, signal: AbortSignal.any([signal, held]) },
      ...(options.limits && { limits: options.limits }),
    });
  });
  let isAnalyzed = false;
  for await (const applied of work) {
    onProgress(applied);
    if (applied.position < goal) continue;
    if (!isAnalyzed) await analyze(shadow);
    isAnalyzed = true;
    if (await swap(shadow, applied.position)) return true;
  }
  return false;
}

/**
 * Reads what the log has up to its end from the log itself. The memory of a process that follows it may still have
 * messages that were removed with their workspace.
 */
function readAnew(log: LogReader, end: Offset): LogReader {
  return {
    ...log,
    async *follow(from, options) {
      if (from.afterOffset < end) {
        yield* log.history(from, end, options.signal);
        if (options.signal.aborted) return;
        options.reached?.(end);
      }
      yield* log.follow({ ...from, afterOffset: laterOf(from.afterOffset, end) }, options);
    },
  };
}

/** Postgres itself analyzes new tables only after a minute or more, and plans queries badly until then. */
async function analyze({ db, schema }: Database): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class where relnamespace = ${schema}::regnamespace and relkind in ('r', 'p')`.execute(
    db,
  );
  await sql`analyze ${sql.join(rows.map(({ name }) => sql.table(`${schema}.${name}`)))}`.execute(db);
}

/** Keeps the tables of an earlier rebuild, unless it is to begin anew, if the same projection built them from the same log. */
async function prepare(shadow: Database, { log, views, fresh = false }: Rebuild): Promise<void> {
  await dropSchema(shadow, retiredSchema);
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${`${shadowSchema}.checkpoint`}) is not null as there`.execute(shadow.db);
  const checkpoint = rows[0]?.there === true ? await readCheckpoint(shadow.db) : undefined;
  const { lastOffset } = await log.bounds();
  const isReusable =
    !fresh &&
    checkpoint?.epoch === log.epoch &&
    checkpoint.projection === projectionVersion(views) &&
    checkpoint.position <= lastOffset;
  if (!isReusable) await dropSchema(shadow, shadowSchema);
  await migrate(shadow);
}

/** False when the live tables follow the same log and are ahead. */
async function swap({ db }: Database, position: Offset): Promise<boolean> {
  const swapped = await db.transaction().execute(async (tx) => {
    const { rows: there } = await sql<{ there: boolean }>`
      select to_regclass(${`${liveSchema}.checkpoint`}) is not null as there`.execute(tx);
    if (there[0]?.there === true) {
      // Checked before readers have to wait, and again when there is no writer any more.
      if (await isLiveAhead(tx, position)) return false;
      await swapLock(tx);
      if (await isLiveAhead(tx, position)) return false;
      await sql`alter schema ${sql.id(liveSchema)} rename to ${sql.id(retiredSchema)}`.execute(tx);
    }
    await sql`alter schema ${sql.id(shadowSchema)} rename to ${sql.id(liveSchema)}`.execute(tx);
    return true;
  });
  // In its own transaction, because it waits for readers of the old tables.
  if (swapped) await dropSchema({ db }, retiredSchema);
  return swapped;
}

async function isLiveAhead(tx: Tx, position: Offset): Promise<boolean> {
  const { rows } = await sql<{ ahead: boolean }>`
    select live.position > ${position} as ahead
    from ${sql.table(`${liveSchema}.checkpoint`)} live join ${sql.table(`${shadowSchema}.checkpoint`)} shadow
      using (name, projection, epoch)`.execute(tx);
  return rows[0]?.ahead === true;
}

async function dropSchema({ db }: Pick<Database, "db">, schema: string): Promise<void> {
  await sql`drop schema if exists ${sql.id(schema)} cascade`.execute(db);
}
