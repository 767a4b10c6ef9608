import { status } from "@grpc/grpc-js";
import type { ControlRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { QueueJobResponse, RunnerConfigRequest, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { maxEffectMs, observeMethod } from "@tapedeck/shared/control-effects";
import { ownValue } from "@tapedeck/shared/own-value";
import { delay } from "@tapedeck/shared/sync/delay";
import type { EmitContent } from "../connection-items.ts";
import type { PolledConnection } from "../polling/connection.ts";
import { resultsAsFrames } from "../polling/poll-result.ts";
import { WakeableTimer } from "../polling/wakeable-timer.ts";
import type { UpstreamStream } from "../push/relayed-streams.ts";
import type { Reply } from "../unary-call.ts";
import { JobFollower } from "./follow-jobs.ts";
import { JobObserver } from "./job-observer.ts";
import { changedBy, type ResourceKind } from "./methods.ts";
import { JobPoll } from "./poll-jobs.ts";
import { ResourcePoll } from "./poll-resources.ts";
import type { JobChange, TappedJobs } from "./tapped-jobs.ts";

export type ConnectionPollsOptions = {
  readonly connection: PolledConnection;
  readonly known: TappedJobs;
  readonly emit: EmitContent;
  readonly timeoutMs: number;
};

/** How long streams may still deliver after the server has said goodbye or is gone. The server itself takes no longer. */
const drainMs = 2_000;
/** The recorder waits no longer for the answer of a control call. */
const controlMs = 30_000;

const { runnerConfig, runnerJobStream } = VagrantService;

/** `effect_ms`: as in ControlAnswer. */
type ControlOutcome = Reply & { readonly effect_ms?: number };

/** Everything that is polled and followed over one connection to a Vagrant server. */
export class ConnectionPolls {
  readonly #connection: PolledConnection;
  readonly #jobTimer = new WakeableTimer();
  /** Jobs that were queued through this connection and have not been listed yet. */
  readonly #queued = new Set<string>();
  readonly #follower: JobFollower;
  readonly #jobs: JobPoll;
  readonly #resources: ResourcePoll;
  readonly #observer: JobObserver;

  constructor({ connection, known, emit, timeoutMs }: ConnectionPollsOptions) {
    const emitJobs = resultsAsFrames(emit, "jobs");
    this.#connection = connection;
    this.#follower = new JobFollower({ connection, known, emit: emitJobs, onComplete: this.#jobTimer.wake });
    this.#jobs = new JobPoll({
      connection,
      known,
      timeoutMs,
      emit: emitJobs,
      timer: this.#jobTimer,
      queued: this.#queued,
      onChange: () => this.#follower.followKnown(),
    });
    this.#observer = new JobObserver({
      jobs: this.#jobs,
      known,
      queued: this.#queued,
      follower: this.#follower,
      signal: connection.signal,
    });
    const emitResources = resultsAsFrames(emit, "resources");
    this.#resources = new ResourcePoll({ connection, known, timeoutMs, emit: emitResources, jobs: this.#jobs });
  }

  /** Resolves after the connection has ended and its streams have ended. */
  async run(): Promise<void> {
    const connection = this.#connection;
    connection.signal.addEventListener("abort", this.#jobTimer.wake);
    await Promise.all([this.#jobs.run(), this.#resources.run()]);
    await connection.over;
    const drained = new AbortController();
    void delay(drainMs, drained.signal).then(() => connection.close());
    await this.#follower.ended();
    drained.abort();
  }

  get isOver(): boolean {
    return this.#connection.signal.aborted;
  }

  jobChanged(change: JobChange): void {
    this.#resources.jobChanged(change);
  }

  async control({ method, request }: ControlRequest): Promise<ControlOutcome> {
    if (method === observeMethod) {
      const effect_ms = await this.#within(this.#observer.observe(request.toString("utf8")));
      return { code: status.OK, message: "", response: Buffer.alloc(0), ...(effect_ms !== undefined && { effect_ms }) };
    }
    const answer = await this.#connection.control(method, request, controlMs);
    if (answer.code !== status.OK) {
      this.#jobTimer.wake();
      return answer;
    }
    if (method === VagrantService.queueJob.path) this.#rememberQueued(answer.response);
    const effect_ms = await this.#within(this.#poll(ownValue(changedBy, method)));
    return effect_ms === undefined ? answer : { ...answer, effect_ms };
  }

  /** Opens a runner's stream. What it changes is observed as the effect of a control call is. */
  stream(method: string): UpstreamStream | undefined {
    if (method !== runnerConfig.path && method !== runnerJobStream.path) return undefined;
    const call = this.#connection.openDuplex(method);
    const isConfig = method === runnerConfig.path;
    let job = "";
    return {
      call,
      clientSends: (message) => {
        const runner = isConfig ? registeredRunner(message) : undefined;
        if (runner !== undefined) this.#resources.registered(runner);
      },
      observe: async (message) => {
        if (isConfig) return this.#within(this.#resources.pollNow("runner"));
        job ||= assignedJob(message);
        // The messages before the end change nothing.
        return message === undefined && job !== "" ? this.#within(this.#observer.observe(job)) : undefined;
      },
    };
  }

  async #poll(changed: "jobs" | ResourceKind | undefined): Promise<void> {
    if (changed === "jobs") await this.#jobs.pollNow();
    else if (changed !== undefined) await this.#resources.pollNow(changed);
  }

  /** How long it took, in ms. Undefined: not done in time, or the connection has ended. */
  async #within(work: Promise<void>): Promise<number | undefined> {
    const startedAt = performance.now();
    const done = new AbortController();
    const isDone = await Promise.race([
      work.then(() => true),
      delay(maxEffectMs, AbortSignal.any([done.signal, this.#connection.signal])).then(() => false),
    ]);
    done.abort();
    return isDone ? Math.round(performance.now() - startedAt) : undefined;
  }

  #rememberQueued(answer: Buffer): void {
    try {
      this.#queued.add(QueueJobResponse.decode(answer).job_id);
    } catch {
      // The caller gets an answer that can't be read as it is; the list shows the job.
    }
  }
}

/** The id of the runner that a message of RunnerConfig registers. */
function registeredRunner(message: Buffer): string | undefined {
  try {
    const { event } = RunnerConfigRequest.decode(message);
    return event?.value.runner?.id;
  } catch {
    return undefined;
  }
}

/** The id of the job that a message of RunnerJobStream assigns; "" for other messages. */
function assignedJob(message: Buffer | undefined): string {
  if (message === undefined) return "";
  try {
    const { event } = runnerJobStream.responseDeserialize(message);
    return event?.$case === "assignment" ? (event.value.job?.id ?? "") : "";
  } catch {
    return "";
  }
}
