import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { startTimer } from "@tapedeck/shared/sync/timers";
import type { JobStream } from "./state/job-stream.ts";
import { type JobHooks, type Jobs, type JobsOptions, startJobs } from "./state/jobs.ts";
import { scrub } from "./state/targets.ts";
import { Panic } from "./status.ts";

export type ProcessOptions = JobsOptions & {
  /** Goes away so many ms after a job with a command is over. */
  readonly dieAfter: number | undefined;
  readonly port: () => { readonly open: () => Promise<void>; readonly close: () => Promise<void> };
};

/** The process that serves a database: what is gone when it ends, and how it ends. */
export class VagrantProcess {
  readonly #options: ProcessOptions;
  readonly #crashing = Promise.withResolvers<string>();
  /** The GetJobStreams that are open. */
  readonly streams = new Set<JobStream>();
  readonly hooks: JobHooks;
  #jobs: Jobs;
  #crashed: string | undefined;
  #isUp = true;

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.#jobs = this.#start();
    this.hooks = this.#hooks();
  }

  get jobs(): Jobs {
    return this.#jobs;
  }

  get crashed(): string | undefined {
    return this.#crashed;
  }

  get crash(): Promise<string> {
    return this.#crashing.promise;
  }

  readonly goAway = async (): Promise<void> => {
    this.#isUp = false;
    for (const stream of this.streams) stream.leave();
    this.streams.clear();
    await this.#options.port().close();
  };

  readonly leave = async (): Promise<void> => {
    scrub(this.#options.database);
    this.#jobs.pruneOldJobs();
    await this.goAway();
  };

  readonly mend = async (): Promise<void> => {
    if (this.#isUp) await this.#options.port().open();
  };

  readonly restart = async (): Promise<void> => {
    await this.goAway();
    this.#jobs = this.#start();
    this.#crashed = undefined;
    this.#isUp = true;
    await this.#options.port().open();
  };

  readonly crashWith = (reason: string): void => {
    this.#crashed ??= `crashed: ${reason}`;
    this.#crashing.resolve(this.#crashed);
    void this.goAway();
  };

  /** A test's actions happen in the process too, and can end it. */
  inside<T>(act: () => T): T {
    if (!this.#isUp) throw new Error("the process is gone");
    try {
      return act();
    } catch (cause) {
      if (cause instanceof Panic) this.crashWith(cause.message);
      throw cause;
    }
  }

  #start(): Jobs {
    const started = startJobs(this.#options);
    const { dieAfter } = this.#options;
    if (dieAfter === undefined) return started;
    started.watchAll((id) => {
      const { state, operation } = started.read(id);
      if (operation?.$case !== "command" || (state !== Job_State.SUCCESS && state !== Job_State.ERROR)) return;
      startTimer(() => started === this.#jobs && this.#isUp && void this.leave(), dieAfter);
    });
    return started;
  }

  #hooks(): JobHooks {
    return {
      assign: (id) => this.inside(() => this.#jobs.assign(id)),
      ack: (id) => this.inside(() => this.#jobs.ack(id)),
      nack: (id) => this.inside(() => this.#jobs.nack(id)),
      dropAssignment: (id) => this.inside(() => this.#jobs.dropAssignment(id)),
      write: (id, events) => this.inside(() => this.#jobs.write(id, events)),
      complete: (id, result) => this.inside(() => this.#jobs.complete(id, result)),
      fail: (id, error) => this.inside(() => this.#jobs.fail(id, error)),
      cancel: (id) => this.inside(() => this.#jobs.cancel(id)),
      expire: (id) => this.inside(() => this.#jobs.expire(id)),
      loseHeartbeat: (id) => this.inside(() => this.#jobs.loseHeartbeat(id)),
    };
  }
}
