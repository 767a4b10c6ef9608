import { status } from "@grpc/grpc-js";
import type { ControlRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { QueueJobResponse, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { delay } from "@tapedeck/shared/sync/delay";
import type { EmitContent } from "../connection-items.ts";
import type { PolledConnection } from "../polling/connection.ts";
import { resultsAsFrames } from "../polling/poll-result.ts";
import { WakeableTimer } from "../polling/wakeable-timer.ts";
import type { Reply } from "../unary-call.ts";
import { JobFollower } from "./follow-jobs.ts";
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

/** Everything that is polled and followed over one connection to a Vagrant server. */
export class ConnectionPolls {
  readonly #connection: PolledConnection;
  readonly #jobTimer = new WakeableTimer();
  /** Jobs that were queued through this connection and have not been listed yet. */
  readonly #queued = new Set<string>();
  readonly #follower: JobFollower;
  readonly #jobs: JobPoll;
  readonly #resources: ResourcePoll;

  constructor({ connection, known, emit, timeoutMs }: ConnectionPollsOptions) {
    const emitJobs = resultsAsFrames(emit, "jobs");
    this.#connection = connection;
    this.#follower = new JobFollower({ connection, known, emit: emitJobs, onComplete: this.#jobTimer.wake });
    this.#jobs = new JobPoll({
      ...{ connection, known, timeoutMs, emit: emitJobs, timer: this.#jobTimer, queued: this.#queued },
      onChange: () => this.#follower.followKnown(),
    });
    const emitResources = resultsAsFrames(emit, "things");
    this.#resources = new ResourcePoll({ connection, known, timeoutMs, emit: emitResources, jobs: this.#jobs });
  }

  /** Resolves after the connection is over and its streams have ended. */
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

  async control({ method, request }: ControlRequest): Promise<Reply> {
    const answer = await this.#connection.control(method, request, controlMs);
    if (method === VagrantService.queueJob.path && answer.code === status.OK) this.#rememberQueued(answer.response);
    this.#jobTimer.wake();
    if (/Target|Project|Basis|Box/.test(method)) this.#resources.pollNow();
    return answer;
  }

  #rememberQueued(answer: Buffer): void {
    try {
      this.#queued.add(QueueJobResponse.decode(answer).job_id);
    } catch {
      // The caller gets an answer that can't be read as it is; the list shows the job.
    }
  }
}
