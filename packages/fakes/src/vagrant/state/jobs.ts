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
import { Panic, Refusal } from "../status.ts";
import type { Database } from "./database.ts";
import { makeOutput, type Output } from "./output.ts";
import { accepts, readQueueRequest, unreadableBecause } from "./queue.ts";
import { needed, notFound } from "./records.ts";
import { plus, type Stamps, toNanos } from "./stamps.ts";
import type { Generation } from "./targets.ts";

/** What happens to a job, done by the name of its cause. Each throws an Error where it cannot happen. */
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
  /** RUNNING to ERROR, as the runner says. */
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
  readonly database: Database;
  readonly stamps: Stamps;
  readonly generation: Generation;
  /** So many finished jobs are known, the oldest are forgotten. The real one looks every 10 minutes. */
  readonly remembered: number;
};

type Known = {
  output?: Output;
  /** The limit of 2 minutes without a heartbeat is running. */
  isTimed: boolean;
  readonly watchers: Set<() => void>;
};

const finished: readonly Job_State[] = [Job_State.SUCCESS, Job_State.ERROR];
const canceled: Status = { code: 1, message: "canceled", details: [] };
const kept = 50;

/**
 * The jobs of one process: those that are not over in the database, of whatever process, and new ones. Throws if a row
 * cannot be read, as the real one can't start then.
 */
export function startJobs({ database, stamps, generation, remembered }: JobsOptions): Jobs {
  const { jobs: rows } = database;
  const known = new Map<string, Known>();
  const watchersOfAll = new Set<(id: string) => void>();

  for (const job of [...rows.values()].filter(({ state }) => !finished.includes(state))) {
    const reason = unreadableBecause(job);
    if (reason !== undefined) throw new Error(`the server cannot start: job ${job.id} has ${reason}`);
    know(job.id, job.state === Job_State.RUNNING);
    const isLate = job.expire_time !== undefined && toNanos(job.expire_time) <= toNanos(stamps.now());
    if (isLate && job.state === Job_State.QUEUED) expire(job.id);
  }

  function know(id: string, isTimed: boolean): void {
    known.set(id, { isTimed, watchers: new Set() });
  }

  function entry(id: string): Known {
    const found = known.get(id);
    if (found === undefined) throw new Refusal(status.NOT_FOUND, "job not found");
    return found;
  }

  function read(id: string): Job {
    entry(id);
    const job = rows.get(id);
    if (job === undefined) throw notFound("job");
    const reason = unreadableBecause(job);
    if (reason !== undefined) throw new Panic(`reading a job with ${reason}`);
    return job;
  }

  function tell(id: string): void {
    for (const changed of [...entry(id).watchers]) changed();
    for (const changed of [...watchersOfAll]) changed(id);
  }

  function change(id: string, fields: Partial<Job>): void {
    rows.set(id, { ...read(id), ...fields });
    tell(id);
  }

  /** The job, which must be in this state. */
  function inState(id: string, state: Job_State, what: string): Job {
    const job = read(id);
    if (job.state !== state) throw new Error(`cannot ${what} job ${id} in state ${job.state}`);
    return job;
  }

  function queueJob(request: QueueJobRequest): QueueJobResponse {
    const { job: given, expiresIn } = readQueueRequest(request, { database, generation });
    const expire_time = expiresIn === undefined ? undefined : plus(stamps.now(), expiresIn);
    const queue_time = stamps.now();
    const id = stamps.id();
    const job = { ...given, id, state: Job_State.QUEUED, queue_time, expire_time };
    rows.set(id, job);
    // The row is there all the same: it is what the next process can't start with.
    if (unreadableBecause(job) === "no target_runner") {
      throw new Refusal(status.INTERNAL, "target_runner: cannot be blank");
    }
    know(id, false);
    if (unreadableBecause(job) === undefined) tell(id);
    if (expiresIn !== undefined && expiresIn <= 0n) expire(id);
    return { job_id: id };
  }

  /** Nothing came of it: ERROR without a complete_time. */
  function giveUp(id: string, cancel_time: Timestamp): void {
    change(id, { state: Job_State.ERROR, cancel_time, error: canceled });
    forgetOldest();
  }

  function cancel(id: string): void {
    const { state, cancel_time = stamps.now() } = read(id);
    if (state === Job_State.QUEUED) giveUp(id, cancel_time);
    else if (!finished.includes(state)) change(id, { cancel_time });
  }

  function expire(id: string): void {
    if (read(id).state !== Job_State.RUNNING) cancel(id);
  }

  function loseHeartbeat(id: string): void {
    const { state, cancel_time = stamps.now() } = read(id);
    if (!entry(id).isTimed) throw new Error(`no heartbeats are expected of job ${id}`);
    if (!finished.includes(state)) giveUp(id, cancel_time);
  }

  function finish(id: string, fields: Partial<Job>): void {
    inState(id, Job_State.RUNNING, "finish");
    change(id, { ...fields, complete_time: stamps.now() });
    forgetOldest();
  }

  /** Rows stay. */
  function forgetOldest(): void {
    const over = [...known.keys()].filter((id) => finished.includes(rows.get(id)?.state ?? Job_State.SUCCESS));
    for (const id of over.slice(0, Math.max(0, over.length - remembered))) known.delete(id);
  }

  function pruneOldJobs(): object {
    for (const id of [...rows.keys()].toSorted().slice(kept)) rows.delete(id);
    return {};
  }

  function validateJob(request: ValidateJobRequest): ValidateJobResponse {
    const job = needed(request.job, "job");
    if (!rows.has(job.id)) {
      const message = "rpc error: code = NotFound desc = failed to locate job (record not found)";
      return { valid: false, validation_error: { code: 9, message, details: [] }, assignable: false };
    }
    if (job.target_runner?.target === undefined) throw new Panic("ValidateJob without a target_runner");
    const assignable = [...database.runners.values()].some((runner) => accepts(runner, job.target_runner));
    return { valid: true, assignable };
  }

  return {
    queueJob,
    cancelJob: ({ job_id }) => {
      cancel(job_id);
      return {};
    },
    getJob: ({ job_id }) => read(job_id),
    listJobs: () => ({ jobs: [...known.keys()].toSorted().map(read) }),
    validateJob,
    pruneOldJobs,
    read,
    output: (id) => entry(id).output,
    watch(id, changed) {
      const { watchers } = entry(id);
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
    watchAll(changed) {
      watchersOfAll.add(changed);
      return () => watchersOfAll.delete(changed);
    },
    ids: () => [...known.keys()].toSorted(),
    assign(id) {
      const { assign_time = stamps.now() } = inState(id, Job_State.QUEUED, "assign");
      change(id, { state: Job_State.WAITING, assign_time });
    },
    ack(id) {
      const { ack_time = stamps.now() } = inState(id, Job_State.WAITING, "ack");
      Object.assign(entry(id), { isTimed: true, output: makeOutput() });
      change(id, { state: Job_State.RUNNING, ack_time });
    },
    nack(id) {
      inState(id, Job_State.WAITING, "nack");
      entry(id).isTimed = true;
      change(id, { state: Job_State.QUEUED });
    },
    dropAssignment(id) {
      inState(id, Job_State.WAITING, "requeue");
      change(id, { state: Job_State.QUEUED });
    },
    write(id, events) {
      inState(id, Job_State.RUNNING, "write output of");
      const { output } = entry(id);
      if (output === undefined) throw new Error(`job ${id} has no output any more`);
      for (const event of events) output.write(event);
      tell(id);
    },
    complete: (id, result) => finish(id, { state: Job_State.SUCCESS, result }),
    fail: (id, error) => finish(id, { state: Job_State.ERROR, error }),
    cancel,
    expire,
    loseHeartbeat,
  };
}
