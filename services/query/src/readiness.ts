import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import type { LogReader } from "@tapedeck/shared/log/log";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import type { ApiDeps } from "./api/deps.ts";
import { unlessSilent } from "./db/away.ts";
import type { Database } from "./db/database.ts";
import { withoutReported } from "./lost-events.ts";
import type { QueryMetrics } from "./metrics.ts";
import type { OpenLogs, ProjectionObserver } from "./projecting/keep-projecting.ts";
import { ProjectedPosition } from "./projecting/progress.ts";
import type { Projected } from "./projecting/project.ts";
import { readSetAside, type SetAsideSource } from "./projecting/set-aside.ts";
import type { AssignedWorkspaces } from "./projecting/take-over/assigned-workspaces.ts";
import type { WorkspaceLogs } from "./projecting/workspace-logs.ts";
import { WorkspaceState, WorkspaceStates } from "./projecting/workspace-state.ts";

/** How many sources the readiness and the metrics name. */
const maxSources = 100;
/** How many workspaces the readiness names. */
const maxWorkspaces = 100;
/** How long an answer waits for a workspace that is just found. */
const beginMs = 2_000;

type AnswerParts = Pick<ApiDeps, "workspace" | "database" | "log" | "progress">;

/** A workspace that is not projected, and why. */
export type WaitingWorkspace = { readonly workspace: string; readonly reason: string };

/** The parts that query can use at the moment: its tables, its logs, and why it does not project. */
export class QueryReadiness implements ProjectionObserver {
  readonly states = new WorkspaceStates();
  readonly #assigned: Pick<AssignedWorkspaces, "refusalOf">;
  readonly #reads: Database;
  readonly #metrics: Pick<QueryMetrics, "applied" | "failed">;
  readonly #decided = Promise.withResolvers<void>();
  /** What the log of a workspace has lost; nothing before query projects. */
  holesOf: (workspace: string, epoch: string) => readonly KnownHole[] = () => [];
  #hasTables = false;
  #open: OpenLogs | undefined;
  #waitingFor: string | undefined = "starting";

  constructor(
    reads: Database,
    metrics: Pick<QueryMetrics, "applied" | "failed">,
    assigned: Pick<AssignedWorkspaces, "refusalOf">,
  ) {
    this.#assigned = assigned;
    this.#reads = reads;
    this.#metrics = metrics;
  }

  /** Why nothing is projected now; undefined: query projects, and one that waits does not concern the others. */
  get waitingFor(): string | undefined {
    const waiting = this.waiting();
    const areAll = waiting.length > 0 && waiting.length === this.states.all().length;
    return this.#waitingFor ?? (areAll ? waiting[0]?.reason : undefined);
  }

  /** The workspaces that are not projected. */
  waiting(): readonly WaitingWorkspace[] {
    const waiting = this.states
      .all()
      .flatMap(({ workspace, isDecided, isRemoved, waitingFor }) =>
        isDecided && !isRemoved && waitingFor !== undefined ? { workspace, reason: waitingFor } : [],
      );
    return waiting.slice(0, maxWorkspaces);
  }

  /** Resolves when query projects, or knows why it can't yet. */
  get decided(): Promise<void> {
    return this.#decided.promise;
  }

  readonly database = (): Database => {
    if (!this.#hasTables) throw new TapedeckError("not_ready", "the database is not ready: try again in a moment");
    return this.#reads;
  };

  readonly logs = (): WorkspaceLogs => {
    if (this.#open === undefined) throw logUnavailable();
    return this.#open.logs;
  };

  /** Rejects while the logs can't be read. */
  async logAnswers(): Promise<void> {
    if (this.#open === undefined) throw new Error("not opened yet");
    await this.#open.logs.names();
  }

  /** What is no workspace's. */
  partsOfAll(): AnswerParts {
    return {
      workspace: "",
      database: this.database,
      log: () => {
        throw invalidArgument("workspace is missing", "workspace");
      },
      progress: new ProjectedPosition(),
    };
  }

  /** @throws TapedeckError not_ready where another query has the workspace */
  assertHas(workspace: string): void {
    const refusal = this.#assigned.refusalOf(workspace);
    if (refusal !== undefined) throw new TapedeckError("not_ready", refusal);
  }

  /** What answers about a workspace are made from. One that nobody has asked for before is begun, if it has a log. */
  async partsOf(workspace: string): Promise<AnswerParts> {
    this.assertHas(workspace);
    const state = this.states.get(workspace) ?? this.#begin(workspace);
    if (!state.isDecided && this.states.onWanted !== undefined) await isDecided(state);
    if (state.log === undefined && state.refusal === undefined && this.#open !== undefined) {
      state.log = await this.#open.logs.of(workspace).catch(() => undefined);
    }
    return {
      workspace,
      progress: state.progress,
      database: () => {
        assertAnswered(state);
        return this.database();
      },
      log: () => logOf(state),
    };
  }

  #begin(workspace: string): WorkspaceState {
    const { onWanted } = this.states;
    if (onWanted === undefined) return new WorkspaceState(workspace);
    const state = this.states.of(workspace);
    onWanted(workspace);
    return state;
  }

  /** The sources with events that could not be applied, the last one first; none while the tables can't be read. */
  async setAside(): Promise<readonly SetAsideSource[]> {
    if (!this.#hasTables) return [];
    return await unlessSilent(this.#reads, readSetAside(this.#reads.db, { limit: maxSources })).catch(() => []);
  }

  /** What the logs have lost before the positions of the tables, until these have the session.gap that reports it. */
  async lost(): Promise<readonly KnownHole[]> {
    const lost = this.states.all().flatMap(({ workspace, epoch, progress }) => {
      const holes = epoch === undefined ? [] : this.holesOf(workspace, epoch);
      return holes.filter(({ last }) => last <= sequenceOf(progress.position));
    });
    if (lost.length === 0 || !this.#hasTables) return lost;
    return await unlessSilent(this.#reads, withoutReported(this.#reads.db, lost)).catch(() => lost);
  }

  hasTables(): void {
    this.#hasTables = true;
  }

  usesLogs(open: OpenLogs | undefined): void {
    this.#open = open;
  }

  applied(applied: Projected): void {
    this.#metrics.applied(applied);
  }

  interrupted(): void {
    this.#metrics.failed();
  }

  waits(reason: string | undefined): void {
    if (reason !== undefined && this.#waitingFor === undefined) this.#metrics.failed();
    this.#waitingFor = reason;
    this.#decided.resolve();
  }

  /** Projecting ended for good. */
  fails(reason: string): void {
    this.#waitingFor = reason;
  }
}

async function isDecided({ decided }: WorkspaceState): Promise<void> {
  const over = new AbortController();
  await Promise.race([decided, delay(beginMs, over.signal)]);
  over.abort();
}

function logUnavailable(): TapedeckError {
  return new TapedeckError("not_ready", "the log is unavailable: try again in a moment");
}

function assertAnswered({ refusal }: WorkspaceState): void {
  if (refusal !== undefined) throw new TapedeckError("not_ready", refusal);
}

function logOf(state: WorkspaceState): LogReader {
  assertAnswered(state);
  if (state.log === undefined) throw logUnavailable();
  return state.log;
}
