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
import { Panic, Refusal } from "../status.ts";
import type { Database } from "./database.ts";
import type { Jobs } from "./jobs.ts";
import { accepts, assignedJob } from "./queue.ts";
import { needed } from "./records.ts";
import { toNanos } from "./stamps.ts";

type ConfigCall = ServerDuplexStream<RunnerConfigRequest, RunnerConfigResponse>;
type JobCall = ServerDuplexStream<RunnerJobStreamRequest, RunnerJobStreamResponse>;
type JobMessage = NonNullable<RunnerJobStreamRequest["event"]>;

/** What a call says when it fails; a Panic among it. */
export type Fail = (cause: unknown) => void;

export function getRunner({ runners }: Database, { runner_id }: GetRunnerRequest): Runner {
  const runner = runners.get(runner_id);
  if (runner === undefined) throw new Refusal(status.NOT_FOUND, "failed to locate runner (record not found)");
  return runner;
}

/** One answer, and the runner is there until its client closes. The row of one with components stays for ever. */
export function runnerConfig({ runners }: Database, call: ConfigCall, fail: Fail): void {
  let runner: Runner | undefined;
  call.on("data", ({ event }: RunnerConfigRequest) => {
    if (runner !== undefined) return;
    if (event === undefined) return fail(new Refusal(status.FAILED_PRECONDITION, "expected an open message"));
    runner = event.value.runner;
    if (runner === undefined) return fail(new Panic("RunnerConfig without a runner"));
    runners.set(runner.id, runner);
    call.write({ config: { config_vars: [] } });
  });
  const gone = () => {
    if (runner?.components.length === 0) runners.delete(runner.id);
  };
  call.on("cancelled", gone);
  call.on("end", () => {
    gone();
    fail(new Refusal(status.CANCELLED, "context canceled"));
  });
}

/** One job on its way through a runner. */
export function runnerJobStream(database: Database, jobs: Jobs, call: JobCall, fail: Fail): void {
  let runner: Runner | undefined;
  let job: string | undefined;
  let step: "request" | "waiting" | "assigned" | "running" | "over" = "request";
  let unwatch = () => {};

  function over(): void {
    step = "over";
    unwatch();
  }

  function refuse(cause: unknown): void {
    over();
    fail(cause);
  }

  function close(): void {
    over();
    call.end();
  }

  function take(): void {
    const queued = jobs
      .ids()
      .map(jobs.read)
      .filter(({ state }) => state === Job_State.QUEUED);
    const mine = queued.filter(({ target_runner }) => runner !== undefined && accepts(runner, target_runner));
    const [oldest] = mine.toSorted((a, b) => (queuedAt(a) < queuedAt(b) ? -1 : 1));
    if (step !== "waiting" || oldest === undefined) return;
    step = "assigned";
    job = oldest.id;
    unwatch();
    jobs.assign(job);
    call.write({ event: { $case: "assignment", value: { job: assignedJob(database, jobs.read(job)) } } });
    unwatch = jobs.watch(job, tellCancel(job));
  }

  /** At the first sight of a cancel, and at each change after it. */
  function tellCancel(id: string): () => void {
    let last = jobs.read(id);
    return () => {
      const now = jobs.read(id);
      if (now === last || now.cancel_time === undefined || now.state === Job_State.SUCCESS) return;
      last = now;
      const force = now.state === Job_State.ERROR && now.complete_time === undefined;
      call.write({ event: { $case: "cancel", value: { force } } });
      if (force) close();
    };
  }

  function hear(message: JobMessage | undefined): void {
    if (step === "request") {
      if (message?.$case !== "request") throw new Refusal(status.FAILED_PRECONDITION, "expected a request message");
      runner = getRunner(database, message.value);
      step = "waiting";
      unwatch = jobs.watchAll(() => {
        try {
          take();
        } catch (cause) {
          refuse(cause);
        }
      });
      take();
    } else if (step === "assigned" && job !== undefined) answer(message, job);
    else if (step === "running" && job !== undefined) run(message, job);
  }

  function answer(message: JobMessage | undefined, id: string): void {
    if (message?.$case === "ack") {
      step = "running";
      jobs.ack(id);
    } else if (message?.$case === "error") {
      over();
      jobs.nack(id);
      call.end();
    } else {
      over();
      jobs.dropAssignment(id);
      throw new Refusal(status.FAILED_PRECONDITION, "expected an ack or an error");
    }
  }

  function run(message: JobMessage | undefined, id: string): void {
    if (message?.$case === "terminal") jobs.write(id, message.value.events);
    if (message?.$case === "complete") {
      over();
      jobs.complete(id, message.value.result);
      call.end();
    }
    if (message?.$case === "error") {
      const { error } = message.value;
      if (error === undefined) throw new Panic("RunnerJobStream with an error that has no status");
      over();
      jobs.fail(id, needed(error, "error"));
      call.end();
    }
  }

  call.on("data", ({ event }: RunnerJobStreamRequest) => {
    try {
      hear(event);
    } catch (cause) {
      refuse(cause);
    }
  });
  call.on("end", () => {
    const before = step;
    over();
    if (before === "assigned" && job !== undefined) {
      jobs.dropAssignment(job);
      fail(new Refusal(status.UNKNOWN, "EOF"));
    } else if (before !== "over") call.end();
  });
  call.on("cancelled", () => {
    const before = step;
    over();
    if (before === "assigned" && job !== undefined) jobs.dropAssignment(job);
  });
}

function queuedAt({ queue_time }: Job): bigint {
  return queue_time === undefined ? 0n : toNanos(queue_time);
}
