import { status } from "@grpc/grpc-js";
import { VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import type { PolledConnection } from "../polling/connection.ts";
import { LateNotice } from "../polling/late-notice.ts";
import type { EmitResult } from "../polling/poll-result.ts";
import { PollRounds } from "../polling/poll-rounds.ts";
import { requestSingleRecords } from "../polling/single-records.ts";
import type { WakeableTimer } from "../polling/wakeable-timer.ts";
import { WholeListInterval } from "../polling/whole-list-interval.ts";
import type { Reply } from "../unary-call.ts";
import { FailureDelay } from "./failure-delay.ts";
import { jobDelayMs } from "./job-pace.ts";
import type { TappedJobs } from "./tapped-jobs.ts";

export type JobPollOptions = {
  readonly connection: Pick<PolledConnection, "signal" | "call">;
  readonly known: TappedJobs;
  readonly emit: EmitResult;
  /** For each list, and for all single jobs that are requested when there is no list together. */
  readonly timeoutMs: number;
  /** Woken when there is a reason to poll now. */
  readonly timer: WakeableTimer;
  /** Jobs that were queued through this tap, which a list that fails can't show. The poll removes them. */
  readonly queued: Set<string>;
  /** Called after each poll that may have shown something new. */
  readonly onChange: () => void;
};

/** Lists the jobs, one call after the other, until the connection has ended. */
export class JobPoll {
  readonly #options: JobPollOptions;
  readonly #firstPoll = Promise.withResolvers<void>();
  readonly #rounds = new PollRounds();
  readonly #wholeList = new WholeListInterval();
  readonly #connectedAt = performance.now();
  readonly #failureDelay: FailureDelay;
  readonly #late: LateNotice;
  #failure: string | undefined;
  #lastList: Buffer | undefined;
  #lastTookMs = 0;

  constructor(options: JobPollOptions) {
    this.#options = options;
    const { connection, emit } = options;
    this.#failureDelay = new FailureDelay(options.timer, connection.signal);
    this.#late = new LateNotice(() => {
      if (!connection.signal.aborted) emit({ $case: "late", value: { kind: "" } });
    });
  }

  /** Resolves after the first poll, or at the end of the connection. */
  get firstPoll(): Promise<void> {
    return this.#firstPoll.promise;
  }

  /** Why the last poll gave no list. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Polls at once. Resolves when what this poll showed was emitted. Never resolves after the end of the connection. */
  pollNow(): Promise<void> {
    const polled = this.#rounds.next();
    this.#options.timer.wake();
    return polled;
  }

  /** Resolves when what the next poll showed was emitted. That poll comes at its own time, and not at once. */
  nextPoll(): Promise<void> {
    return this.#rounds.next();
  }

  /** How long the last list took. */
  get tookMs(): number {
    return this.#lastTookMs;
  }

  async run(): Promise<void> {
    const { connection, timeoutMs, timer } = this.#options;
    const { signal } = connection;
    while (!signal.aborted) {
      this.#rounds.begin();
      const requestedAt = performance.now();
      const reply = await connection.call(listJobs, nothing, timeoutMs);
      if (signal.aborted) break;
      if (reply.code === status.OK) {
        const delayMs = this.#takeList(reply.response, requestedAt);
        this.#rounds.succeeded();
        this.#late.answered(delayMs + this.#lastTookMs);
        await timer.delay(delayMs);
      } else {
        await this.#takeFailure(reply);
        // Then the jobs were requested one by one.
        if (reply.code === status.NOT_FOUND) this.#rounds.succeeded();
        await this.#failureDelay.after(reply.code);
      }
    }
    this.#late.stop();
    this.#firstPoll.resolve();
  }

  /** Gives the delay until the next poll. */
  #takeList(list: Buffer, requestedAt: number): number {
    const { known, emit, queued, onChange } = this.#options;
    const answeredAt = performance.now();
    this.#failureDelay.reset();
    this.#failure = undefined;
    queued.clear();
    const hasChanged = this.#lastList === undefined || !this.#lastList.equals(list);
    const isWhole = this.#wholeList.isDue(hasChanged, answeredAt);
    emit(isWhole ? { $case: "all", value: list } : { $case: "same", value: true });
    if (hasChanged) {
      this.#lastList = list;
      known.updateAll(list);
      onChange();
    }
    this.#firstPoll.resolve();
    // The first answer is slow on any server, and any other may be slow by chance.
    const tookMs = performance.now() - requestedAt;
    const usualMs = Math.min(tookMs, this.#lastTookMs);
    this.#lastTookMs = tookMs;
    return jobDelayMs({
      jobs: known.all(),
      msSinceConnected: answeredAt - this.#connectedAt,
      msSinceJobEnded: answeredAt - known.endedAt,
      tookMs: usualMs,
    });
  }

  async #takeFailure({ code, message }: Reply): Promise<void> {
    const { emit, onChange } = this.#options;
    emit({ $case: "failed", value: { code, message } });
    if (code === status.NOT_FOUND) await this.#requestKnownJobs();
    this.#failure = message;
    onChange();
    this.#firstPoll.resolve();
  }

  /** A single missing row spoils the whole list, so the known jobs are requested one by one. */
  async #requestKnownJobs(): Promise<void> {
    const { connection, known, queued, emit, timeoutMs } = this.#options;
    const jobs = known.all();
    const unfinished = jobs.flatMap(({ id, isFinished }) => (isFinished ? [] : [id]));
    // If even the newest finished job is missing, this is another server.
    const newest = jobs.findLast(({ isFinished }) => isFinished);
    const ids = new Set([...(newest ? [newest.id] : []), ...unfinished, ...queued]);
    queued.clear();
    const requestFor = (id: string) => getJob.requestSerialize({ job_id: id });
    const requests = { path: getJob.path, requestFor, connection, emit, timeoutMs };
    for await (const { reply } of requestSingleRecords([...ids], requests)) {
      if (reply.code === status.OK) known.update(reply.response);
    }
  }
}

const { getJob } = VagrantService;
const listJobs = VagrantService.listJobs.path;
const nothing = Buffer.alloc(0);
