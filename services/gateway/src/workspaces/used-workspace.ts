import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { HolesWatch, type KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import { isLogMissing, type Log, LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { type LogReader, LogReplacedError } from "@tapedeck/shared/log/log";
import { requestLog } from "@tapedeck/shared/log/workspaces/open-on-request";
import type { Logger } from "@tapedeck/shared/service/logger";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { startTimer, stopTimer, type Timer, timeoutSignal } from "@tapedeck/shared/sync/timers";
import type { NatsConnection } from "nats";
import type { LogLink } from "../log-link.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { watchedReader } from "./watched-reader.ts";

/** What the APIs need of a workspace's log. */
export type WorkspaceLog = {
  readonly workspace: string;
  /** @throws TapedeckError not_ready, with the reason, until the log is open */
  readonly log: () => LogReader;
  /** What the log has lost, as far as ingest has checked it. */
  readonly holes: () => readonly KnownHole[];
};

export type UsedWorkspaceOptions<Apis> = {
  readonly workspace: string;
  readonly link: Pick<LogLink, "logs" | "nats">;
  readonly counted: GatewayMetrics["counted"];
  readonly logger: Logger;
  readonly apisOf: (log: WorkspaceLog) => Apis;
  readonly idleMs: number;
  /** Called once nobody has followed or asked for `idleMs`, and when the log was replaced by another one. */
  readonly over: (replaced: Log | undefined) => void;
};

/** How long a caller waits for a log that is being opened. Without it, what needs no log is answered all the same. */
const maxOpeningMs = 2_000;

/** How soon after a failure the log is opened again. */
const againMs = 1_000;

/** A workspace that somebody follows or has asked for a moment ago: its APIs, and its log as soon as it is open. */
export class UsedWorkspace<Apis> implements Disposable, WorkspaceLog {
  readonly workspace: string;
  readonly apis: Apis;
  readonly #options: UsedWorkspaceOptions<Apis>;
  readonly #idle: Timer;
  #readers = 0;
  #opened: Log | undefined;
  #reader: LogReader | undefined;
  #holes: HolesWatch | undefined;
  #isOver = false;
  #opening: Promise<void> | undefined;
  #failure: { readonly error: TapedeckError; readonly at: number } | undefined;

  constructor(options: UsedWorkspaceOptions<Apis>) {
    this.#options = options;
    this.workspace = options.workspace;
    this.#idle = startTimer(() => this.#passed(), options.idleMs).unref();
    this.apis = options.apisOf(this);
  }

  readonly log = (): LogReader => {
    if (this.#reader === undefined) throw this.#failure?.error ?? away();
    return this.#reader;
  };

  readonly holes = (): readonly KnownHole[] => this.#holes?.now() ?? [];

  /** Somebody asks: resolves when the log is open, or can't be opened now. */
  async used(): Promise<void> {
    this.#idle.refresh();
    if (this.#reader !== undefined) return;
    const hasFailed = this.#failure !== undefined && performance.now() - this.#failure.at < againMs;
    if (this.#opening === undefined && hasFailed) return;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    await abortable(this.#opening, timeoutSignal(maxOpeningMs)).catch(() => {});
  }

  /** The logs with these epochs are removed: the next caller gets another one. */
  removed(epochs: readonly string[]): void {
    if (this.#opened !== undefined && epochs.includes(this.#opened.epoch)) this.#end(this.#opened);
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    stopTimer(this.#idle);
  }

  async #open(): Promise<void> {
    const { workspace, link, counted, logger } = this.#options;
    try {
      const { connection: nats } = link.nats();
      const opened = await openedOrBegun(link.logs(), nats, workspace);
      if (this.#isOver) return;
      this.#opened = opened;
      const warn = (message: string, fields = {}) => logger.warn({ ...fields, workspace }, message);
      this.#holes = new HolesWatch({ nats, workspace, epoch: opened.epoch, warn });
      await this.#holes.loaded;
      this.#reader = counted(watchedReader(opened.reader, this.#watchOf(opened)));
      this.#failure = undefined;
    } catch (cause) {
      this.#failure = { error: refusalOf(workspace, cause), at: performance.now() };
    }
  }

  #watchOf(log: Log) {
    return {
      began: () => {
        this.#readers++;
        return () => {
          this.#readers--;
          this.#idle.refresh();
        };
      },
      failed: (error: unknown) => {
        if (error instanceof LogReplacedError) this.#end(log);
      },
    };
  }

  #passed(): void {
    if (this.#readers > 0 || this.#opening !== undefined) this.#idle.refresh();
    else this.#end(undefined);
  }

  #end(replaced: Log | undefined): void {
    if (this.#isOver) return;
    this[Symbol.dispose]();
    this.#options.over(replaced);
  }
}

/** A workspace in which nothing has been recorded gets its log now, so that its callers have positions to resume from. */
async function openedOrBegun(logs: ReturnType<LogLink["logs"]>, nats: NatsConnection, workspace: string): Promise<Log> {
  try {
    return await logs.of(workspace);
  } catch (error) {
    if (!isLogMissing(error)) throw error;
    await requestLog(nats, workspace).catch((cause: Error) => {
      const text = `nothing is recorded in the workspace "${workspace}" yet, and no ingest begins its log: ${cause.message}`;
      throw new TapedeckError("not_ready", text, {}, { cause });
    });
    return logs.of(workspace);
  }
}

function away(): TapedeckError {
  return new TapedeckError("not_ready", "the log can't be reached: try again in a moment");
}

/** Clients learn the reasons that are sentences for people. */
function refusalOf(workspace: string, cause: unknown): TapedeckError {
  if (cause instanceof TapedeckError) return cause;
  if (!(cause instanceof LogUnusableError)) return away();
  const text = `the log of the workspace "${workspace}" can't be used: ${cause.message}`;
  return new TapedeckError("not_ready", text, {}, { cause });
}
