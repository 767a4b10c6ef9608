import { type ConnectedLogs, LogConnector } from "@tapedeck/shared/log/connect-log";
import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import { shortList } from "@tapedeck/shared/output/short-list";
import { startHealthServer } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import { openCertificate } from "@tapedeck/shared/service/tls/certificate";
import { delay } from "@tapedeck/shared/sync/delay";
import { sql } from "kysely";
import { LastSeenSources } from "./api/last-seen-sources.ts";
import { type ApiOptions, type DepsOf, startApi } from "./api/server.ts";
import type { QueryConfig } from "./config.ts";
import { watchReaders } from "./db/access/watch-readers.ts";
import { unlessSilent } from "./db/away.ts";
import { openDatabase } from "./db/database.ts";
import { WorkspaceHoles } from "./lost-events.ts";
import { type MetricSources, queryMetrics } from "./metrics.ts";
import { gatheringBatches } from "./projecting/batch-turns.ts";
import { type BatchLimits, defaultLimits } from "./projecting/batches.ts";
import { DriftWatch } from "./projecting/drift-watch.ts";
import { ViewFiller } from "./projecting/fill-views.ts";
import { keepDropping } from "./projecting/forget/keep-dropping.ts";
import { forgetWorkspace } from "./projecting/forget/workspace.ts";
import { keepProjecting, type OpenLogs } from "./projecting/keep-projecting.ts";
import { rebuild } from "./projecting/rebuild.ts";
import { rebuildWorkspace } from "./projecting/rebuild-workspace.ts";
import type { SetAsideSource } from "./projecting/set-aside.ts";
import { keepBuildDays } from "./projecting/sum-build-days.ts";
import { AssignedWorkspaces } from "./projecting/take-over/assigned-workspaces.ts";
import { logsOver } from "./projecting/workspace-logs.ts";
import { QueryReadiness, type WaitingWorkspace } from "./readiness.ts";
import { folds } from "./views/folds.ts";
import { NewestStates } from "./views/states/newest-states.ts";
import { views } from "./views/views.ts";

/** A running query. Disposing it ends projecting and closes its pools. */
export type Query = AsyncDisposable & {
  /** gRPC, "host:port". */
  readonly address: string;
  readonly addresses: Readonly<Record<"grpc" | "health", string>>;
  /** The position that the tables of a workspace reflect. */
  readonly positionOf: (workspace: string) => Offset;
  /** Removes the rows of a workspace: nothing of it is answered any more when it resolves. See forgetWorkspace. */
  readonly forget: (workspace: string) => Promise<boolean>;
  /** Rejects for an error that does not go away by itself; the message is one sentence for people. */
  readonly failed: Promise<never>;
};

/** How long a start waits for query to project. A database or log that is away does not delay it further. */
const startMs = 5_000;

/** Folds the log into Postgres and answers questions about it. */
export async function startQuery(config: QueryConfig, logger: Logger): Promise<Query> {
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const writes = stack.use(openDatabase({ url: config.databaseUrl, connections: 2 }));
  const reads = stack.use(openDatabase({ url: config.databaseUrl, statementTimeoutMs: config.timeoutMs }));
  const filler = stack.use(new ViewFiller(writes, logger));
  const assigned = new AssignedWorkspaces({ name: config.advertise, patterns: config.workspaces });
  const metrics = queryMetrics(metricSources(config, assigned, () => readiness));
  const readiness = new QueryReadiness(reads, metrics, assigned);
  const lastSeen = new LastSeenSources();
  const newest = new NewestStates();
  const depsOf: DepsOf = async (workspace) => ({
    ...(workspace === "" ? readiness.partsOfAll() : await readiness.partsOf(workspace)),
    folds,
    lastSeen,
    newest,
  });
  const { registry } = metrics;
  const warn = (message: string) => logger.warn(message);
  const certificate = config.tls && stack.use(openCertificate(config.tls, { warn, registry }));
  const api = stack.use(
    await startApi(depsOf, { ...apiOptions(config, readiness, logger, stop.signal, filler), certificate }),
  );
  const ofOwn = depsOfOwn(assigned, depsOf);
  const drift = stack.use(new DriftWatch({ depsOf: ofOwn, folds, logger, onCompared: metrics.compared }));
  const health = stack.use(
    await startHealthServer({
      ...config.health,
      checks: {
        projection: () => readiness.waitingFor,
        log: async () => whyNot(readiness.logAnswers()),
        database: () => whyNot(unlessSilent(reads, sql`select 1`.execute(reads.db))),
      },
      metrics: registry,
      details: async () =>
        detailsOf(
          await readiness.setAside(),
          await readiness.lost(),
          readiness.waitingFor === undefined ? readiness.waiting() : [],
          assigned.conflicts(),
        ),
    }),
  );

  const gathering = gatheringBatches((workspace) => readiness.states.of(workspace).progress);
  const connector = new LogConnector({ service: "query", settings: config.nats, logger, gathering });
  const projecting = keepProjecting({
    database: writes,
    databaseUrl: config.databaseUrl,
    readers: { analystPassword: config.analystPassword, limits: config.readers, developers: config.developers },
    openLogs: async () => {
      const connected = await connector.open(async (opened) => opened, stop.signal);
      // Until the connection is closed.
      lastSeen.listen(connected.nats);
      return openLogs(connected, assigned);
    },
    assigned,
    leaveMs: config.leaveMs,
    beside: ({ nats }) => {
      const holes = new WorkspaceHoles(nats, warn);
      readiness.holesOf = (workspace, epoch) => holes.of(workspace, epoch);
      return drift.listen(nats);
    },
    views: views({ textRows: config.textRows, newest }),
    limits: limitsOf(config),
    states: readiness.states,
    logger,
    signal: stop.signal,
    observer: readiness,
    fill: (views) => filler.fill(views),
  });
  const failed = failureOf(projecting, readiness);
  const watching = watchReaders({ database: reads, limits: config.readers, logger, signal: stop.signal });
  const summing = keepBuildDays({ database: writes, logger, signal: stop.signal });
  const onRemoved = (workspace: string) => readiness.states.onWanted?.(workspace);
  const dropping = keepDropping(writes, { onRemoved, logger, signal: stop.signal });
  stack.defer(async () => {
    stop.abort();
    await Promise.all([projecting.catch(() => {}), watching, summing, dropping]);
  });
  await Promise.race([readiness.decided, failed, delay(startMs, stop.signal)]);

  const running = stack.move();
  return {
    address: api.address,
    addresses: { grpc: api.address, health: health.address },
    positionOf: (workspace) => readiness.states.get(workspace)?.progress.position ?? logStart,
    forget: (workspace) => forgetWorkspace(writes.db, workspace),
    failed,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

function metricSources(
  { metrics }: QueryConfig,
  assigned: AssignedWorkspaces,
  readiness: () => QueryReadiness,
): MetricSources {
  return {
    states: () => readiness().states.all(),
    // A standby answers for them, too, and so does a query that a workspace comes to or leaves.
    isReporter: (workspace) => readiness().states.areProjected && assigned.of(workspace) === "own",
    setAside: () => readiness().setAside(),
    totals: { database: () => readiness().database(), ...metrics },
  };
}

function limitsOf({ batchEvents }: QueryConfig): BatchLimits {
  return { ...defaultLimits, events: batchEvents };
}

/** What another query answers for, that one compares. */
function depsOfOwn(assigned: AssignedWorkspaces, depsOf: DepsOf): DepsOf {
  return async (workspace) => {
    if (assigned.of(workspace) !== "own") throw new Error(`another query has the workspace ${workspace}`);
    return depsOf(workspace);
  };
}

async function openLogs(connected: ConnectedLogs, assigned: AssignedWorkspaces): Promise<OpenLogs> {
  await using stack = new AsyncDisposableStack();
  stack.use(connected);
  stack.use(await assigned.listen(connected.nats));
  const owned = stack.move();
  return {
    nats: connected.nats,
    logs: logsOver(connected, (workspace) => assigned.isProjected(workspace, false)),
    names: () => connected.logs.names(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function apiOptions(
  config: QueryConfig,
  readiness: QueryReadiness,
  logger: Logger,
  stop: AbortSignal,
  filler: ViewFiller,
): Omit<ApiOptions, "certificate"> {
  return {
    ...config.grpc,
    connectionLimits: config.connectionLimits,
    key: config.servicesKey,
    timeoutMs: config.timeoutMs,
    readers: config.readers,
    database: readiness.database,
    name: config.workspaces.length > 0 ? config.advertise : "",
    waitsFor: (workspace) => readiness.states.get(workspace)?.waitingFor ?? "",
    rebuild: async ({ workspace, signal, ...options }) => {
      const parts = {
        ...options,
        databaseUrl: config.databaseUrl,
        logs: readiness.logs(),
        views: views({ textRows: config.textRows }),
        limits: limitsOf(config),
        signal: AbortSignal.any([signal, stop]),
      };
      if (workspace !== undefined) {
        // Nobody would keep its rows here up to date, or delete them.
        readiness.assertHas(workspace);
        return rebuildWorkspace({ ...parts, workspace });
      }
      return rebuild({ ...parts, fill: (views) => filler.fill(views) });
    },
    onError: (method, cause) => logger.error({ err: cause, method }, "a call failed"),
  };
}

/** For operators: what the tables do not have although query is ready. */
function detailsOf(
  setAside: readonly SetAsideSource[],
  lost: readonly KnownHole[],
  waiting: readonly WaitingWorkspace[],
  conflicts: readonly string[],
): Readonly<Record<string, unknown>> {
  const ofWaiting = waiting.map(({ workspace, reason }) => `workspace ${workspace} is not projected: ${reason}`);
  const warnings = [...ofWaiting, ...conflicts, ...warningOfSetAside(setAside), ...warningOfLost(lost)];
  if (warnings.length === 0) return {};
  return {
    ...(setAside.length > 0 && { setAside: setAside.map(detailOfSource) }),
    ...(lost.length > 0 && { lost }),
    ...(waiting.length > 0 && { waiting }),
    warnings,
  };
}

/** What was projected before it was lost is in the tables: nobody knows. */
function warningOfLost(lost: readonly KnownHole[]): readonly string[] {
  if (lost.length === 0) return [];
  const sources = shortList([...new Set(lost.map(({ source }) => source))].toSorted());
  return [`the tables may lack events of ${sources}, which the log has lost: session.gap events show where`];
}

function detailOfSource(one: SetAsideSource): Readonly<Record<string, unknown>> {
  const { source, events, first_position, last_position, last_at, error_code, error } = one;
  return {
    source,
    events,
    firstOffset: first_position,
    lastOffset: last_position,
    lastAt: last_at,
    errorCode: error_code,
    error,
  };
}

function warningOfSetAside(setAside: readonly SetAsideSource[]): readonly string[] {
  const [last] = setAside;
  if (last === undefined) return [];
  const events = setAside.reduce((sum, { events }) => sum + events, 0);
  const what = events === 1 ? "1 event is" : `${events} events are`;
  return [`${what} not in the tables, because they can't be applied; the last one is of ${last.source}: ${last.error}`];
}

/** Rejects when projecting does. Nobody has to listen to it. */
function failureOf(projecting: Promise<void>, readiness: QueryReadiness): Promise<never> {
  const failed = new Promise<never>((_resolve, reject) => {
    projecting.catch((error: unknown) => {
      readiness.fails(error instanceof Error ? error.message : String(error));
      reject(error);
    });
  });
  failed.catch(() => {});
  return failed;
}

/** Undefined when the check succeeds, else why it does not. */
async function whyNot(check: Promise<unknown>): Promise<string | undefined> {
  try {
    await check;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
}
