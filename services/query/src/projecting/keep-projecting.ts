import type { ConnectedLogs } from "@tapedeck/shared/log/connect-log";
import { answerTablesPassed } from "@tapedeck/shared/log/erasures/tables-passed";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { reportTablesEnds, type TablesEnds } from "@tapedeck/shared/log/tables-end";
import type { Logger } from "@tapedeck/shared/service/logger";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { letReadersIn, limitReaders, type ReaderLogins } from "../db/access/grants.ts";
import { readCheckpoints } from "../db/checkpoint.ts";
import type { Database } from "../db/database.ts";
import { AlreadyProjectedError, takeTables } from "../db/lock.ts";
import { migrate, NewerSchemaError } from "../db/migrate.ts";
import type { View } from "../views/view.ts";
import { projectionVersion } from "../views/views.ts";
import type { BatchLimits } from "./batches.ts";
import { haveAllPassed } from "./forget/all-tables.ts";
import type { Projected } from "./project.ts";
import { projectAll } from "./project-all.ts";
import { rebuild } from "./rebuild.ts";
import type { AssignedWorkspaces } from "./take-over/assigned-workspaces.ts";
import type { WorkspaceLogs } from "./workspace-logs.ts";
import { OldTablesError, reasonOf } from "./workspace-projection.ts";
import type { WorkspaceStates } from "./workspace-state.ts";

/** The connection to NATS, and the logs that are read over it. Disposing closes both. */
export type OpenLogs = AsyncDisposable & {
  readonly nats: ConnectedLogs["nats"];
  /** The logs of the workspaces of this query. */
  readonly logs: WorkspaceLogs;
  /** All workspaces that have a log, also those of other queries. */
  readonly names: () => Promise<readonly string[]>;
};

export type KeepProjecting = {
  readonly database: Database;
  readonly databaseUrl: string;
  readonly readers: ReaderLogins;
  readonly openLogs: () => Promise<OpenLogs>;
  /** Called when this query begins to project; what it gives is disposed when it stops. Not for a query that stands by. */
  readonly beside: (logs: OpenLogs) => Disposable;
  readonly assigned: AssignedWorkspaces;
  /** See TakeOverOptions. */
  readonly leaveMs: number;
  readonly views: readonly View[];
  readonly limits: BatchLimits;
  readonly states: WorkspaceStates;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly observer: ProjectionObserver;
  /** Fills materialized views after a rebuild. Projecting does not wait for it. */
  readonly fill: (views: readonly string[]) => void;
};

/** Learns what projecting has and does. */
export type ProjectionObserver = {
  /** The database has its tables and can be read. */
  hasTables(): void;
  /** The logs that are read from now on; undefined: none. */
  usesLogs(logs: OpenLogs | undefined): void;
  applied(applied: Projected): void;
  /** A workspace was followed, and is not any more. */
  interrupted(): void;
  /** Why nothing is projected now; undefined: whatever has a log is, or another query does. */
  waits(reason: string | undefined): void;
};

/** How often a standby query checks whether it is needed. */
const standbyMs = 500;

/**
 * Projects until the signal, and retries when NATS or the database goes away. What concerns one workspace stays with it (see
 * WorkspaceProjection). Rejects only for errors that do not go away by themselves: a schema of a newer Tapedeck, an unusable
 * nats-server.
 */
export async function keepProjecting(options: KeepProjecting): Promise<void> {
  const { logger, signal, observer } = options;
  await using held = new HeldLogs(options);
  const retry = backoff(100, 2_000);
  let lastReason = "";
  let areLimited = false;
  const admitReaders = async () => {
    const leftOut = [...(await letReadersIn(options.database, options.readers.developers))];
    if (areLimited) return;
    leftOut.push(...(await limitReaders(options.database, options.readers)));
    areLimited = true;
    if (leftOut.length > 0) logger.warn({ leftOut }, "some restrictions of the database's readers are not in force");
  };
  while (!signal.aborted) {
    try {
      await projectOnce(options, held, admitReaders, () => {
        retry.reset();
        lastReason = "";
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof AlreadyProjectedError) {
        await standBy(options, held);
        continue;
      }
      if (error instanceof OldTablesError) continue;
      // The log itself is fine where it lacks something: rebuilds and answers about the past read it.
      if (!(error instanceof OutOfRangeError)) await held.close();
      if (isFinal(error)) throw error;
      areLimited = false; // after an outage the database may be another one
      const reason = reasonOf(error);
      observer.waits(reason);
      if (reason !== lastReason) logger.warn({ err: error }, "projecting was interrupted and will continue");
      lastReason = reason;
      await delay(retry.next(), signal);
    }
  }
}

async function projectOnce(
  options: KeepProjecting,
  held: HeldLogs,
  admitReaders: () => Promise<void>,
  onWorking: () => void,
): Promise<void> {
  const { database, databaseUrl, assigned, views, limits, states, logger, signal, observer, beside, fill } = options;
  await migrate(database);
  await admitReaders();
  observer.hasTables();

  const checkpoints = await readCheckpoints(database.db);
  const open = await held.open();
  for (const one of checkpoints.filter(({ removed }) => !removed)) states.of(one.workspace).isAt(one);
  if (checkpoints.some(({ removed, projection }) => !removed && projection !== projectionVersion(views))) {
    logger.info({ to: projectionVersion(views) }, "rebuilding the tables");
    observer.waits("the tables are rebuilt from the log, because this version builds them differently");
    await rebuild({ databaseUrl, logs: open.logs, views, limits, signal, fill });
    return;
  }
  await using tables = await takeTables(database);
  // Before the log is read: if it has lost its end, ingest must not assign these positions again.
  using _beside = beside(open);
  const { nats, logs, names } = open;
  using ends = reportTablesEnds(nats, () => tablesEnds(states), {
    query: assigned.query.name,
    isOwn: (workspace) => assigned.of(workspace) === "own",
  });
  const over = new AbortController();
  using _following = { [Symbol.dispose]: () => over.abort() };
  void followMap(assigned, ends.changed, over.signal);
  using _answering = answerTablesPassed(nats, assigned.query.name, (workspace, end) =>
    haveAllPassed(database, workspace, end),
  );
  await projectAll({
    ...options,
    logs,
    takeOver: { assigned, nats, names, leaveMs: options.leaveMs },
    pipelines: tables.pipelines,
    signal: AbortSignal.any([signal, tables.lost]),
    onBegun: () => {
      onWorking();
      observer.waits(undefined);
    },
    onApplied: (applied) => {
      ends.changed();
      observer.applied(applied);
    },
    onInterrupted: () => observer.interrupted(),
  });
  tables.lost.throwIfAborted();
}

/** Calls `changed` when the map was read, until the signal: the end of a workspace that changes hands may have to be stored. */
async function followMap(
  assigned: Pick<AssignedWorkspaces, "changed">,
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await abortable(assigned.changed(), signal).then(changed, () => {});
  }
}

function tablesEnds(states: WorkspaceStates): TablesEnds {
  const ends = states.all().flatMap(({ workspace, epoch, isRemoved, progress }) => {
    return epoch === undefined || isRemoved
      ? []
      : [[workspace, { epoch, seq: sequenceOf(progress.position) }] as const];
  });
  return new Map(ends);
}

/**
 * Another query projects. This one answers, with logs of its own for what is not in the tables, and takes over when the
 * other is gone.
 */
async function standBy({ database, states, signal, observer }: KeepProjecting, held: HeldLogs): Promise<void> {
  observer.waits(undefined);
  const checkpoints = await readCheckpoints(database.db).catch(() => []);
  for (const { workspace, epoch, position } of checkpoints.filter(({ removed }) => !removed)) {
    const state = states.of(workspace);
    state.isAt({ epoch, position });
    state.follows(epoch);
    // The tables are of another log meanwhile: that is the one to answer from.
    if (state.log !== undefined && state.log.epoch !== epoch) await held.close();
  }
  await delay(standbyMs, signal);
}

/** The logs that answers are made from. They stay open while query stands by. */
class HeldLogs implements AsyncDisposable {
  readonly #options: Pick<KeepProjecting, "openLogs" | "observer" | "states">;
  #open: OpenLogs | undefined;

  constructor(options: Pick<KeepProjecting, "openLogs" | "observer" | "states">) {
    this.#options = options;
  }

  async open(): Promise<OpenLogs> {
    this.#open ??= await this.#options.openLogs();
    this.#options.observer.usesLogs(this.#open);
    return this.#open;
  }

  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    this.#options.observer.usesLogs(undefined);
    for (const state of this.#options.states.all()) state.log = undefined;
    await open?.[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function isFinal(error: unknown): boolean {
  return error instanceof NewerSchemaError || error instanceof LogUnusableError;
}
