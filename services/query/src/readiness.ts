import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import type { Log } from "@tapedeck/shared/log/jetstream";
import type { LogReader } from "@tapedeck/shared/log/log";
import { type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import type { ApiDeps } from "./api/deps.ts";
import type { Database } from "./db/database.ts";
import { withoutReported } from "./lost-events.ts";
import type { QueryMetrics } from "./metrics.ts";
import type { ProjectionObserver } from "./projecting/keep-projecting.ts";
import type { Projected } from "./projecting/project.ts";
import { readSetAside, type SetAsideSource } from "./projecting/set-aside.ts";

/** How many sources the readiness and the metrics name. */
const maxSources = 100;

/** The parts that query can use at the moment: its tables, its log, and why it does not project. */
export class QueryReadiness implements ProjectionObserver, Pick<ApiDeps, "database" | "log"> {
  readonly #reads: Database;
  readonly #metrics: Pick<QueryMetrics, "applied" | "failed">;
  readonly #decided = Promise.withResolvers<void>();
  /** What the log has lost; nothing before query projects. */
  holes: () => readonly KnownHole[] = () => [];
  #hasTables = false;
  #log: Log | undefined;
  #waitingFor: string | undefined = "starting";

  constructor(reads: Database, metrics: Pick<QueryMetrics, "applied" | "failed">) {
    this.#reads = reads;
    this.#metrics = metrics;
  }

  /** Why nothing is projected now; undefined: query projects. */
  get waitingFor(): string | undefined {
    return this.#waitingFor;
  }

  /** Resolves when query projects, or knows why it can't yet. */
  get decided(): Promise<void> {
    return this.#decided.promise;
  }

  readonly database = (): Database => {
    if (!this.#hasTables) throw new TapedeckError("not_ready", "the database is not ready: try again in a moment");
    return this.#reads;
  };

  readonly log = (): LogReader => {
    if (this.#log === undefined) throw new TapedeckError("not_ready", "the log is unavailable: try again in a moment");
    return this.#log.reader;
  };

  get openLog(): Log | undefined {
    return this.#log;
  }

  /** The sources with events that could not be applied, the last one first; none while the tables can't be read. */
  async setAside(): Promise<readonly SetAsideSource[]> {
    if (!this.#hasTables) return [];
    return await readSetAside(this.#reads.db, { limit: maxSources }).catch(() => []);
  }

  /** What the log has lost before this position, until the tables have the session.gap that reports it. */
  async lost(position: Offset): Promise<readonly KnownHole[]> {
    const lost = this.holes().filter(({ last }) => last <= sequenceOf(position));
    if (lost.length === 0 || !this.#hasTables) return lost;
    return await withoutReported(this.#reads.db, lost).catch(() => lost);
  }

  hasTables(): void {
    this.#hasTables = true;
  }

  usesLog(log: Log | undefined): void {
    this.#log = log;
  }

  applied(applied: Projected): void {
    this.#metrics.applied(applied);
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
