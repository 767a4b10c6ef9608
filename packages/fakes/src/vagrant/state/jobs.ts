import { status } from "@grpc/grpc-js";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import type { Status } from "@tapedeck/proto/google/rpc/status";
import {
  type CancelJobRequest,
  type GetJobRequest,
  type Job,
  type Job_Result,
  Job_State,
  type ListJobsResponse,
  type QueueJobRequest,
  type QueueJobResponse,
  type GetJobStreamResponse_Terminal_Event as TerminalEvent,
  type ValidateJobRequest,
  type ValidateJobResponse,
} from "@tapedeck/proto/vagrant/vagrant";
import { delay } from "@tapedeck/shared/sync/delay";
import { nanosOfTimestamp } from "@tapedeck/shared/time/timestamp";
import { Panic, Refusal } from "../status.ts";
import type { ServerDatabase } from "./database.ts";
import { JobTable } from "./job-table.ts";
import { makeOutput, type Output } from "./output.ts";
import { accepts, readQueueRequest, unreadableBecause } from "./queue.ts";
import { needed } from "./records.ts";
import { plus, type Stamps } from "./stamps.ts";
import type { Generation } from "./targets.ts";

/** The causes of a job's changes, by name. Each throws an Error if it cannot happen. */
export type JobHooks = {
  /** QUEUED to WAITING: a runner is given the job. */
  readonly assign: (id: string) => void;
  /** WAITING to RUNNING, and the output begins. */
  readonly ack: (id: string) => void;
  /** WAITING to QUEUED: the runner refuses. From then on the heartbeat limit can hit. */
  readonly nack: (id: string) => void;
  /** WAITING to QUEUED: 2 minutes without an answer, or the runner's stream is gone. */
  readonly dropAssignment: (id: string) => void;
  readonly write: (id: string, events: readonly TerminalEvent[]) => void;
  /** RUNNING to SUCCESS, which a command that failed has too. */
  readonly complete: (id: string, result?: Job_Result) => void;
  /** RUNNING to ERROR, as reported by the runner. */
  readonly fail: (id: string, error: Status) => void;
  readonly cancel: (id: string) => void;
  /** Its time is up: of no effect once it runs. */
  readonly expire: (id: string) => void;
  /** 2 minutes without a heartbeat since the ack, or since a nack: ERROR, unless it is over. */
  readonly loseHeartbeat: (id: string) => void;
};

export type Jobs = JobHooks & {
  readonly queueJob: (request: QueueJobRequest) => QueueJobResponse;
  readonly cancelJob: (request: CancelJobRequest) => object;
  readonly getJob: (request: GetJobRequest) => Job;
  readonly listJobs: () => ListJobsResponse;
  readonly validateJob: (request: ValidateJobRequest) => ValidateJobResponse;
  readonly pruneOldJobs: () => object;
  /** NOT_FOUND unless the process knows it and its row is there. */
  readonly read: (id: string) => Job;
  /** Undefined before the ack and after a restart. */
  readonly output: (id: string) => Output | undefined;
  /** `changed` is called after each change of the job and each piece of output. Gives the function that ends it. */
  readonly watch: (id: string, changed: () => void) => () => void;
  /** Called after each change of any job. */
  readonly watchAll: (changed: (id: string) => void) => () => void;
  readonly ids: () => string[];
};

export type JobsOptions = {
  readonly database: ServerDatabase;
  readonly stamps: Stamps;
  readonly generation: Generation;
  /** How many finished jobs are known; older ones are forgotten. The real server checks every 10 minutes. */
  readonly remembered: number;
  /** Jobs expire when their time is over. */
  readonly expires?: boolean | undefined;
};

const finished: readonly Job_State[] = [Job_State.SUCCESS, Job_State.ERROR];
const canceled: Status = { code: 1, message: "canceled", details: [] };
const kept = 50;

/**
 * The jobs of one process: those that are not over in the database, of whatever process, and new ones. Throws if a row
 * cannot be read, as the real one can't start then.
 */
export function startJobs(options: JobsOptions): Jobs {
  return new ProcessJobs(options);
}

class ProcessJobs implements Jobs {
  readonly #options: JobsOptions;
  readonly #table: JobTable;

  constructor(options: JobsOptions) {
    const { database, stamps } = options;
    this.#options = options;
    this.#table = new JobTable(database);
    for (const job of [...database.jobs.values()].filter(({ state }) => !finished.includes(state))) {
      const reason = unreadableBecause(job);
      if (reason !== undefined) throw new Error(`the server cannot start: job ${job.id} has ${reason}`);
      this.#table.know(job.id, job.state === Job_State.RUNNING);
      const isLate =
        job.expire_time !== undefined && nanosOfTimestamp(job.expire_time) <= nanosOfTimestamp(stamps.now());
      if (isLate && job.state === Job_State.QUEUED) this.expire(job.id);
    }
  }

  queueJob(request: QueueJobRequest): QueueJobResponse {
    const { database, stamps, generation, expires } = this.#options;
    const { job: given, expiresIn } = readQueueRequest(request, { database, generation });
    const expire_time = expiresIn === undefined ? undefined : plus(stamps.now(), expiresIn);
    const queue_time = stamps.now();
    const id = stamps.id();
    const job = { ...given, id, state: Job_State.QUEUED, queue_time, expire_time };
    database.jobs.set(id, job);
    // The row is there all the same: it is what the next process can't start with.
    if (unreadableBecause(job) === "no target_runner") {
      throw new Refusal(status.INTERNAL, "target_runner: cannot be blank");
    }
    this.#table.know(id, false);
    if (unreadableBecause(job) === undefined) this.#table.notify(id);
    if (expiresIn !== undefined && expiresIn <= 0n) this.expire(id);
    else if (expiresIn !== undefined && expires) void delay(Number(expiresIn / 1_000_000n)).then(() => this.expire(id));
    return { job_id: id };
  }

  cancelJob({ job_id }: CancelJobRequest): object {
    this.cancel(job_id);
    return {};
  }

  getJob({ job_id }: GetJobRequest): Job {
    return this.read(job_id);
  }

  listJobs(): ListJobsResponse {
    return { jobs: this.ids().map((id) => this.read(id)) };
  }

  validateJob(request: ValidateJobRequest): ValidateJobResponse {
    const { database } = this.#options;
    const job = needed(request.job, "job");
    if (!database.jobs.has(job.id)) {
      const message = "rpc error: code = NotFound desc = failed to locate job (record not found)";
      return { valid: false, validation_error: { code: 9, message, details: [] }, assignable: false };
    }
    if (job.target_runner?.target === undefined) throw new Panic("ValidateJob without a target_runner");
    const assignable = [...database.runners.values()].some((runner) => accepts(runner, job.target_runner));
    return { valid: true, assignable };
  }

  pruneOldJobs(): object {
    const { jobs } = this.#options.database;
    for (const id of [...jobs.keys()].toSorted().slice(kept)) jobs.delete(id);
    return {};
  }

  read(id: string): Job {
    return this.#table.read(id);
  }

  output(id: string): Output | undefined {
    return this.#table.entry(id).output;
  }

  watch(id: string, changed: () => void): () => void {
    return this.#table.watch(id, changed);
  }

  watchAll(changed: (id: string) => void): () => void {
    return this.#table.watchAll(changed);
  }

  ids(): string[] {
    return this.#table.ids();
  }

  assign(id: string): void {
    const { assign_time = this.#now() } = this.#table.inState(id, Job_State.QUEUED, "assign");
    this.#table.change(id, { state: Job_State.WAITING, assign_time });
  }

  ack(id: string): void {
    const { ack_time = this.#now() } = this.#table.inState(id, Job_State.WAITING, "ack");
    Object.assign(this.#table.entry(id), { isTimed: true, output: makeOutput() });
    this.#table.change(id, { state: Job_State.RUNNING, ack_time });
  }

  nack(id: string): void {
    this.#table.inState(id, Job_State.WAITING, "nack");
    this.#table.entry(id).isTimed = true;
    this.#table.change(id, { state: Job_State.QUEUED });
  }

  dropAssignment(id: string): void {
    this.#table.inState(id, Job_State.WAITING, "requeue");
    this.#table.change(id, { state: Job_State.QUEUED });
  }

  write(id: string, events: readonly TerminalEvent[]): void {
    this.#table.inState(id, Job_State.RUNNING, "write output of");
    const { output } = this.#table.entry(id);
    if (output === undefined) throw new Error(`job ${id} has no output any more`);
    for (const event of events) output.write(event);
    this.#table.notify(id);
  }

  complete(id: string, result?: Job_Result): void {
    this.#finish(id, { state: Job_State.SUCCESS, result });
  }

  fail(id: string, error: Status): void {
    this.#finish(id, { state: Job_State.ERROR, error });
  }

  cancel(id: string): void {
    const { state, cancel_time = this.#now() } = this.read(id);
    if (state === Job_State.QUEUED) this.#giveUp(id, cancel_time);
    else if (!finished.includes(state)) this.#table.change(id, { cancel_time });
  }

  expire(id: string): void {
    if (this.read(id).state !== Job_State.RUNNING) this.cancel(id);
  }

  loseHeartbeat(id: string): void {
    const { state, cancel_time = this.#now() } = this.read(id);
    if (!this.#table.entry(id).isTimed) throw new Error(`no heartbeats are expected of job ${id}`);
    if (!finished.includes(state)) this.#giveUp(id, cancel_time);
  }

  #finish(id: string, fields: Partial<Job>): void {
    this.#table.inState(id, Job_State.RUNNING, "finish");
    this.#table.change(id, { ...fields, complete_time: this.#now() });
    this.#forgetOldest();
  }

  /** Nothing came of it: ERROR without a complete_time. */
  #giveUp(id: string, cancel_time: Timestamp): void {
    this.#table.change(id, { state: Job_State.ERROR, cancel_time, error: canceled });
    this.#forgetOldest();
  }

  /** Rows stay. */
  #forgetOldest(): void {
    const { database, remembered } = this.#options;
    const isOver = (id: string) => finished.includes(database.jobs.get(id)?.state ?? Job_State.SUCCESS);
    const over = this.#table.known().filter(isOver);
    for (const id of over.slice(0, Math.max(0, over.length - remembered))) this.#table.forget(id);
  }

  #now(): Timestamp {
    return this.#options.stamps.now();
  }
}
