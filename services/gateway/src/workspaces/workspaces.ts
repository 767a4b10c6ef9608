import { type LogReader, LogReplacedError } from "@tapedeck/shared/log/log";
import { UsedWorkspace, type UsedWorkspaceOptions } from "./used-workspace.ts";

export type WorkspacesOptions<Apis> = Pick<UsedWorkspaceOptions<Apis>, "link" | "counted" | "logger" | "apisOf"> & {
  /** How long nobody has to follow or ask for a workspace before it costs nothing any more. Default: a minute. */
  readonly idleMs?: number;
};

const defaultIdleMs = 60_000;

/** How many logs are checked, at most, to find one that answers. */
const maxChecked = 3;

/** How many workspaces a warning names. */
const maxNamed = 10;

/** How old an answer may be: everyone may request /readyz. */
const rememberedMs = 5_000;

/** The workspaces that are in use: each has its own log, and what is wrong with one log concerns its callers alone. */
export class Workspaces<Apis> implements Disposable {
  readonly #options: WorkspacesOptions<Apis>;
  readonly #used = new Map<string, UsedWorkspace<Apis>>();
  /** The reader of the last log that has answered `check`. */
  #answering: LogReader | undefined;
  #problems: { readonly at: number; readonly found: Promise<readonly string[]> } | undefined;

  constructor(options: WorkspacesOptions<Apis>) {
    this.#options = options;
  }

  /** How many are in use. */
  get count(): number {
    return this.#used.size;
  }

  /** The APIs of a workspace, whose log may be away: then what needs it throws why. */
  readonly apisOf = async (workspace: string): Promise<Apis> => {
    const used = this.#used.get(workspace) ?? this.#begin(workspace);
    await used.used();
    return used.apis;
  };

  /** The log of a workspace. @throws TapedeckError not_ready, with the reason */
  readonly logOf = async (workspace: string): Promise<LogReader> => {
    const used = this.#used.get(workspace) ?? this.#begin(workspace);
    await used.used();
    return used.log();
  };

  /** The logs of a workspace with these epochs are removed. */
  removed(workspace: string, epochs: readonly string[]): void {
    this.#used.get(workspace)?.removed(epochs);
  }

  /** Rejects where no log answers, although there is one. */
  async check(): Promise<void> {
    const known = this.#answering;
    this.#answering = undefined;
    const failure = await known?.bounds().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (known !== undefined && failure === undefined) {
      this.#answering = known;
      return;
    }
    const logs = this.#options.link.logs();
    const failures: unknown[] = failure === undefined ? [] : [failure];
    const names = await logs.names().catch((error: unknown) => {
      throw failure ?? error;
    });
    for (const workspace of names.slice(0, maxChecked)) {
      try {
        this.#answering = await this.#answeringOf(workspace);
        return;
      } catch (error) {
        failures.push(error);
      }
    }
    if (names.length > 0) throw failures[0];
  }

  /** One sentence for each workspace in use whose log does not answer, while others do. */
  async problems(): Promise<readonly string[]> {
    const now = performance.now();
    if (this.#problems === undefined || now - this.#problems.at >= rememberedMs) {
      this.#problems = { at: now, found: this.#findProblems() };
    }
    return await this.#problems.found;
  }

  [Symbol.dispose](): void {
    for (const used of this.#used.values()) used[Symbol.dispose]();
    this.#used.clear();
  }

  #begin(workspace: string): UsedWorkspace<Apis> {
    const { link, counted, logger, apisOf, idleMs = defaultIdleMs } = this.#options;
    const used = new UsedWorkspace({
      workspace,
      link,
      counted,
      logger,
      apisOf,
      idleMs,
      over: (replaced) => {
        if (this.#used.get(workspace) === used) this.#used.delete(workspace);
        if (replaced === undefined) return;
        logger.warn({ workspace, epoch: replaced.epoch }, "the log was replaced by another one, which is served now");
        void link.logs().forget(workspace, replaced);
      },
    });
    this.#used.set(workspace, used);
    return used;
  }

  async #answeringOf(workspace: string): Promise<LogReader> {
    const logs = this.#options.link.logs();
    const log = await logs.of(workspace);
    try {
      await log.reader.bounds();
      return log.reader;
    } catch (error) {
      if (!(error instanceof LogReplacedError)) throw error;
      await logs.forget(workspace, log);
      const { reader } = await logs.of(workspace);
      await reader.bounds();
      return reader;
    }
  }

  async #findProblems(): Promise<readonly string[]> {
    const isAnyThere = await this.check().then(
      () => true,
      () => false,
    );
    // Readiness says that all are away.
    if (!isAnyThere) return [];
    const found = await Promise.all(
      [...this.#used].map(async ([workspace, used]) => {
        try {
          await used.log().bounds();
          return [];
        } catch (error) {
          return [`the workspace "${workspace}" is away: ${error instanceof Error ? error.message : error}`];
        }
      }),
    );
    const all = found.flat();
    const more = all.length > maxNamed ? [`${all.length - maxNamed} more workspaces are away`] : [];
    return [...all.slice(0, maxNamed), ...more];
  }
}
