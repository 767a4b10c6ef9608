import { isLogMissing } from "@tapedeck/shared/log/jetstream";
import type { LogBounds, LogReader } from "@tapedeck/shared/log/log";
import { laterOf, type Offset } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { letReadersIn } from "../db/access/grants.ts";
import { assertOfThisLog, lostLog, readCheckpoints } from "../db/checkpoint.ts";
import { type Database, internalSchema, liveSchema, openDatabase } from "../db/database.ts";
import { takeTables } from "../db/lock.ts";
import { migrate } from "../db/migrate.ts";
import type { Pipelines } from "../db/pipelines.ts";
import { analyze } from "../db/plan-statistics.ts";
import type { CheckpointRow } from "../db/schema.ts";
import type { View } from "../views/view.ts";
import { projectionVersion } from "../views/views.ts";
import type { BatchLimits } from "./batches.ts";
import { fillViews } from "./fill-views.ts";
import { type Projected, project } from "./project.ts";
import { dropRetired, dropSchemas, hasTables, shadowSchema, swap } from "./swap.ts";
import type { WorkspaceLogs } from "./workspace-logs.ts";
import { hasEvents } from "./workspace-projection.ts";

export type Rebuild = {
  readonly databaseUrl: string;
  readonly logs: Pick<WorkspaceLogs, "names" | "of" | "isRemoved">;
  readonly views: readonly View[];
  readonly limits?: BatchLimits;
  /** Begin anew: an earlier rebuild may have what was removed from the log since. */
  readonly fresh?: boolean;
  readonly signal: AbortSignal;
  /** Learns at the beginning what is read. */
  readonly onBegun?: (logs: readonly LogToRead[]) => void;
  readonly onProgress?: (applied: RebuiltBatch) => void;
  /** Takes the materialized views that are to be filled after the swap; by default they are filled before it resolves. */
  readonly fill?: (views: readonly string[]) => void;
  /** By default the views that can't be filled are only left empty. */
  readonly onUnfilled?: (view: string, error: unknown) => void;
};

export type RebuiltBatch = Projected & { readonly workspace: string };

/** The log of a workspace, and where its end was when the rebuild began. */
export type LogToRead = { readonly workspace: string; readonly log: LogReader; readonly bounds: LogBounds };

/**
 * Builds all tables again from the logs, beside the live ones, and swaps them in when those of each workspace have caught up.
 * Meanwhile the live tables keep answering, and keep following the logs if they can. Continues an earlier rebuild that was
 * killed. A running query need not be notified. What others made of the tables is made again (dependants.ts). Resolves with
 * true at the swap, or with false when the signal ended it before; throws as project does.
 * @throws DependantsError when something that others made does not fit the new tables: the old ones stay
 * @throws AlreadyProjectedError when another rebuild runs
 * @throws ForeignCheckpointError when the live tables of a workspace are another log's
 * @throws SwapBlockedError when open transactions have read the live tables for too long
 */
export async function rebuild(options: Rebuild): Promise<boolean> {
  const { views, signal, fill, onUnfilled = () => {} } = options;
  await using shadow = openDatabase({ url: options.databaseUrl, schema: shadowSchema, connections: 3 });
  const logs = await logsToRead(shadow, options);
  await using tables = await takeTables(shadow);
  await prepare(shadow, logs, options);
  await letReadersIn(shadow);
  options.onBegun?.(logs);
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, tables.lost, stop.signal]);
  const work = new Rebuilding(shadow, tables.pipelines, { ...options, signal: ended });
  try {
    for (const one of logs) work.begin(one);
    for (let isAnalyzed = false; !ended.aborted; ) {
      const moved = work.moved(ended);
      moved.catch(() => {}); // reported when its turn comes
      if (work.isCaughtUp) {
        if (!isAnalyzed) await analyze(shadow);
        isAnalyzed = true;
        await work.beginNew();
        await hideRemoved(shadow, options);
        const toFill = await swap(shadow, projectionVersion(views), signal);
        if (toFill !== undefined) {
          if (fill === undefined) await fillViews(shadow, toFill, { signal, onUnfilled });
          else fill(toFill);
          return true;
        }
      }
      await moved;
    }
  } finally {
    stop.abort();
    await work.over();
  }
  tables.lost.throwIfAborted();
  return false;
}

/** An earlier rebuild may have read the log of a workspace that was removed since. */
async function hideRemoved({ db }: Database, { logs }: Pick<Rebuild, "logs">): Promise<void> {
  for (const { workspace, epoch } of await readCheckpoints(db)) {
    if (!logs.isRemoved(workspace, epoch)) continue;
    await db.updateTable("checkpoint").set({ removed: true }).where("workspace", "=", workspace).execute();
  }
}

/** The projections into the new tables. */
class Rebuilding {
  readonly #shadow: Database;
  readonly #pipelines: Pipelines;
  readonly #options: Rebuild;
  readonly #moved = new Notifier();
  /** How far each workspace is, and how far it has to come. */
  readonly #positions = new Map<string, { position: Offset | undefined; readonly goal: Offset }>();
  readonly #running: Promise<void>[] = [];
  readonly #failed = Promise.withResolvers<never>();

  constructor(shadow: Database, pipelines: Pipelines, options: Rebuild) {
    this.#shadow = shadow;
    this.#pipelines = pipelines;
    this.#options = options;
    this.#failed.promise.catch(() => {});
  }

  get isCaughtUp(): boolean {
    return [...this.#positions.values()].every(({ position, goal }) => position !== undefined && position >= goal);
  }

  begin({ workspace, log, bounds }: LogToRead): void {
    const goal = bounds.lastOffset;
    const reached: { position: Offset | undefined; readonly goal: Offset } = { position: undefined, goal };
    this.#positions.set(workspace, reached);
    const { views, limits, signal, onProgress = () => {} } = this.#options;
    const run = async () => {
      const connection = this.#pipelines.lane();
      const parts = { connection, workspace, log: readAnew(log, goal), views, signal };
      for await (const applied of project({ ...parts, ...(limits && { limits }) })) {
        onProgress({ workspace, ...applied });
        reached.position = applied.position;
        this.#moved.ring();
      }
    };
    this.#running.push(
      run().catch((error: unknown) => {
        if (!signal.aborted) this.#failed.reject(error);
      }),
    );
  }

  /** Begins the workspaces whose log has begun since. */
  async beginNew(): Promise<void> {
    const found = await logsOf(this.#options.logs, await knownWorkspaces(this.#shadow), this.#positions);
    for (const one of found) this.begin(one);
  }

  /** Resolves when a workspace has come farther, or at the signal. Rejects when one can't. */
  async moved(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    signal.addEventListener("abort", wake);
    if (signal.aborted) resolve();
    void this.#moved.next().then(wake);
    await Promise.race([promise, this.#failed.promise]).finally(() => signal.removeEventListener("abort", wake));
  }

  async over(): Promise<void> {
    await Promise.all(this.#running);
  }
}

/**
 * Reads what the log has up to its end from the log itself. The memory of a process that follows it may still have
 * messages that were removed with their workspace.
 */
export function readAnew(log: LogReader, end: Offset): LogReader {
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

/**
 * The logs of all workspaces. The tables of a log that was lost may be all that is left of it.
 * @throws ForeignCheckpointError
 */
async function logsToRead(shadow: Database, { logs }: Pick<Rebuild, "logs">): Promise<readonly LogToRead[]> {
  const checkpoints = (await liveCheckpoints(shadow)).filter(({ removed }) => !removed);
  for (const checkpoint of checkpoints.filter(hasEvents))
    await assertOfThisLog(checkpoint, await logOf(logs, checkpoint));
  return logsOf(logs, await knownWorkspaces(shadow), new Map());
}

/** Those that the live tables know, which need not have events. */
async function knownWorkspaces(shadow: Database): Promise<readonly string[]> {
  return (await liveCheckpoints(shadow)).filter(({ removed }) => !removed).map(({ workspace }) => workspace);
}

/** The logs of these workspaces and of all others, without those that were found before. */
async function logsOf(
  logs: Rebuild["logs"],
  workspaces: readonly string[],
  before: ReadonlyMap<string, unknown>,
): Promise<readonly LogToRead[]> {
  const found: LogToRead[] = [];
  for (const workspace of new Set([...workspaces, ...(await logs.names())])) {
    if (before.has(workspace)) continue;
    const log = await logs.of(workspace).catch((error: unknown) => {
      if (!isLogMissing(error)) throw error;
      return undefined;
    });
    if (log !== undefined) found.push({ workspace, log, bounds: await log.bounds() });
  }
  return found;
}

export async function liveCheckpoints({ db }: Database): Promise<readonly CheckpointRow[]> {
  return (await hasTables(db, liveSchema)) ? readCheckpoints(db.withSchema(internalSchema(liveSchema))) : [];
}

/** @throws ForeignCheckpointError when there is none any more */
export async function logOf(logs: Pick<WorkspaceLogs, "of">, checkpoint: CheckpointRow): Promise<LogReader> {
  return logs.of(checkpoint.workspace).catch((cause: unknown) => {
    throw isLogMissing(cause) ? lostLog(checkpoint, cause) : cause;
  });
}

/** Keeps the tables of an earlier rebuild, unless it is to begin anew, if the same projection built them from the same logs. */
export async function prepare(
  shadow: Database,
  logs: readonly LogToRead[],
  { views, fresh = false }: Pick<Rebuild, "views" | "fresh">,
): Promise<void> {
  await dropRetired(shadow);
  const checkpoints = (await hasTables(shadow.db, shadowSchema)) ? await readCheckpoints(shadow.db) : [];
  let isReusable = !fresh && checkpoints.length > 0;
  for (const { workspace, epoch, projection, position } of checkpoints) {
    const known = logs.find((one) => one.workspace === workspace);
    isReusable &&=
      known !== undefined &&
      epoch === known.log.epoch &&
      projection === projectionVersion(views) &&
      position <= known.bounds.lastOffset &&
      (await isRetained(known.log, position));
  }
  if (!isReusable) await dropSchemas(shadow, shadowSchema);
  await migrate(shadow);
}

/** Whether the log still has all that follows. */
async function isRetained(log: LogReader, after: Offset): Promise<boolean> {
  try {
    await log.assertRetained(after);
    return true;
  } catch (error) {
    if (error instanceof OutOfRangeError) return false;
    throw error;
  }
}
