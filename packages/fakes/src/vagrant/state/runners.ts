import { type ServerDuplexStream, status } from "@grpc/grpc-js";
import {
  type GetRunnerRequest,
  type Job,
  Job_State,
  type Runner,
  type RunnerConfigRequest,
  type RunnerConfigResponse,
  type RunnerJobStreamRequest,
  type RunnerJobStreamResponse,
} from "@tapedeck/proto/vagrant/vagrant";
import { nanosOfTimestamp } from "@tapedeck/shared/time/timestamp";
import { Panic, Refusal } from "../status.ts";
import type { ServerDatabase } from "./database.ts";
import type { Jobs } from "./jobs.ts";
import { accepts, assignedJob } from "./queue.ts";
import { needed } from "./records.ts";

type ConfigCall = ServerDuplexStream<RunnerConfigRequest, RunnerConfigResponse>;
type JobCall = ServerDuplexStream<RunnerJobStreamRequest, RunnerJobStreamResponse>;
type JobMessage = NonNullable<RunnerJobStreamRequest["event"]>;

/** Reports a call's failure, a Panic included. */
export type Fail = (cause: unknown) => void;

export function getRunner({ runners }: ServerDatabase, { runner_id }: GetRunnerRequest): Runner {
  const runner = runners.get(runner_id);
  if (runner === undefined) throw new Refusal(status.NOT_FOUND, "failed to locate runner (record not found)");
  return runner;
}

/** One answer, and the runner is there until its client closes. The row of one with components stays for ever. */
export function runnerConfig({ runners }: ServerDatabase, call: ConfigCall, fail: Fail): void {
  let runner: Runner | undefined;
  call.on("data", ({ event }: RunnerConfigRequest) => {
    if (runner !== undefined) return;
    if (event === undefined) return fail(new Refusal(status.FAILED_PRECONDITION, "expected an open message"));
    runner = event.value.runner;
    if (runner === undefined) return fail(new Panic("RunnerConfig without a runner"));
    runners.set(runner.id, runner);
    call.write({ config: { config_vars: [] } });
  });
  const removeEmpty = () => {
    if (runner?.components.length === 0) runners.delete(runner.id);
  };
  call.on("cancelled", removeEmpty);
  call.on("end", () => {
    removeEmpty();
    fail(new Refusal(status.CANCELLED, "context canceled"));
  });
}

/** One job on its way through a runner. */
export function runnerJobStream(database: ServerDatabase, jobs: Jobs, call: JobCall, fail: Fail): void {
  const stream = new RunnerJobStream(database, jobs, call, fail);
  call.on("data", ({ event }: RunnerJobStreamRequest) => stream.hear(event));
  call.on("end", () => stream.end());
  call.on("cancelled", () => stream.cancel());
}

class RunnerJobStream {
  readonly #database: ServerDatabase;
  readonly #jobs: Jobs;
  readonly #call: JobCall;
  readonly #fail: Fail;
  #runner: Runner | undefined;
  #job: string | undefined;
  #step: "request" | "waiting" | "assigned" | "running" | "over" = "request";
  #unwatch = () => {};

  constructor(database: ServerDatabase, jobs: Jobs, call: JobCall, fail: Fail) {
    this.#database = database;
    this.#jobs = jobs;
    this.#call = call;
    this.#fail = fail;
  }

  hear(message: JobMessage | undefined): void {
    this.#orRefuse(() => {
      if (this.#step === "request") this.#begin(message);
      else if (this.#step === "assigned" && this.#job !== undefined) this.#answer(message, this.#job);
      else if (this.#step === "running" && this.#job !== undefined) this.#run(message, this.#job);
    });
  }

  end(): void {
    const before = this.#step;
    this.#over();
    if (before === "assigned" && this.#job !== undefined) {
      this.#jobs.dropAssignment(this.#job);
      this.#fail(new Refusal(status.UNKNOWN, "EOF"));
    } else if (before !== "over") this.#call.end();
  }

  cancel(): void {
    const before = this.#step;
    this.#over();
    if (before === "assigned" && this.#job !== undefined) this.#jobs.dropAssignment(this.#job);
  }

  #begin(message: JobMessage | undefined): void {
    if (message?.$case !== "request") throw new Refusal(status.FAILED_PRECONDITION, "expected a request message");
    this.#runner = getRunner(this.#database, message.value);
    this.#step = "waiting";
    this.#unwatch = this.#jobs.watchAll(() => this.#orRefuse(() => this.#take()));
    this.#take();
  }

  #take(): void {
    const runner = this.#runner;
    const queued = this.#jobs
      .ids()
      .map((id) => this.#jobs.read(id))
      .filter(({ state }) => state === Job_State.QUEUED);
    const mine = queued.filter(({ target_runner }) => runner !== undefined && accepts(runner, target_runner));
    const [oldest] = mine.toSorted((a, b) => (queuedAt(a) < queuedAt(b) ? -1 : 1));
    if (this.#step !== "waiting" || oldest === undefined) return;
    const { id } = oldest;
    this.#step = "assigned";
    this.#job = id;
    this.#unwatch();
    this.#jobs.assign(id);
    const job = assignedJob(this.#database, this.#jobs.read(id));
    this.#call.write({ event: { $case: "assignment", value: { job } } });
    this.#unwatch = this.#jobs.watch(id, this.#tellCancel(id));
  }

  /** At the first sight of a cancel, and at each change after it. */
  #tellCancel(id: string): () => void {
    let last = this.#jobs.read(id);
    return () => {
      const now = this.#jobs.read(id);
      if (now === last || now.cancel_time === undefined || now.state === Job_State.SUCCESS) return;
      last = now;
      const force = now.state === Job_State.ERROR && now.complete_time === undefined;
      this.#call.write({ event: { $case: "cancel", value: { force } } });
      if (force) this.#close();
    };
  }

  #answer(message: JobMessage | undefined, id: string): void {
    if (message?.$case === "ack") {
      this.#step = "running";
      this.#jobs.ack(id);
    } else if (message?.$case === "error") {
      this.#over();
      this.#jobs.nack(id);
      this.#call.end();
    } else {
      this.#over();
      this.#jobs.dropAssignment(id);
      throw new Refusal(status.FAILED_PRECONDITION, "expected an ack or an error");
    }
  }

  #run(message: JobMessage | undefined, id: string): void {
    if (message?.$case === "terminal") this.#jobs.write(id, message.value.events);
    if (message?.$case === "complete") {
      this.#over();
      this.#jobs.complete(id, message.value.result);
      this.#call.end();
    }
    if (message?.$case === "error") {
      const { error } = message.value;
      if (error === undefined) throw new Panic("RunnerJobStream with an error that has no status");
      this.#over();
      this.#jobs.fail(id, needed(error, "error"));
      this.#call.end();
    }
  }

  #orRefuse(act: () => void): void {
    try {
      act();
    } catch (cause) {
      this.#over();
      this.#fail(cause);
    }
  }

  #close(): void {
    this.#over();
    this.#call.end();
  }

  #over(): void {
    this.#step = "over";
    this.#unwatch();
  }
}

function queuedAt({ queue_time }: Job): bigint {
  return queue_time === undefined ? 0n : nanosOfTimestamp(queue_time);
}
