import { createHash } from "node:crypto";
import { status } from "@grpc/grpc-js";
import type { Resource } from "@tapedeck/proto/tapedeck/v1/observation";
import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import type { PolledConnection } from "../polling/connection.ts";
import { LateNotice } from "../polling/late-notice.ts";
import type { EmitResult } from "../polling/poll-result.ts";
import { PollRounds } from "../polling/poll-rounds.ts";
import { WakeableTimer } from "../polling/wakeable-timer.ts";
import { WholeListInterval } from "../polling/whole-list-interval.ts";
import { FailureDelay } from "./failure-delay.ts";
import { CallFailed, type FetchedResources, fetchResources } from "./fetch-resources.ts";
import { type ResourceKind, type ResourceMethods, resourceMethods } from "./methods.ts";
import type { JobPoll } from "./poll-jobs.ts";
import type { JobChange, TappedJobs } from "./tapped-jobs.ts";

export type ResourcePollOptions = {
  readonly connection: Pick<PolledConnection, "signal" | "call">;
  readonly known: TappedJobs;
  readonly emit: EmitResult;
  /** For each answer. */
  readonly timeoutMs: number;
  /** The jobs show which runners exist. */
  readonly jobs: Pick<JobPoll, "firstPoll" | "failure">;
};

/** A command changes its target most; the other resources hardly ever change. */
const targetMs = { command: 1_000, else: 15_000 };
const otherMs = 30_000;
/** A runner describes itself once; one without components is forgotten when it leaves. */
const runnerMs = 300_000;
/** A command saves and clears up when its job has ended; one with a server of its own is gone within 100 ms. */
const afterJobMs = [50, 1_000];
/** The newest runners that jobs name, or that registered through this tap: each command brings one of its own. */
const maxRunners = 200;

/** The kinds that jobs and control calls change. */
const changingKinds: readonly ResourceKind[] = ["target", "project", "basis", "box"];

/** One kind of resource, and what was emitted of it last. */
class PolledKind {
  readonly methods: ResourceMethods;
  readonly timer = new WakeableTimer();
  readonly rounds = new PollRounds();
  readonly #wholeList = new WholeListInterval();
  #lastDigest: string | undefined;

  constructor(methods: ResourceMethods) {
    this.methods = methods;
  }

  /** The kind's part of a result; without entries where it is the same as before. */
  part(resources: readonly Resource[], missing: readonly string[]) {
    const digest = digestOf(resources, missing);
    const isWhole = this.#wholeList.isDue(digest !== this.#lastDigest);
    this.#lastDigest = digest;
    const { kind } = this.methods;
    return { kind, same: !isWhole, entries: isWhole ? [...resources] : [], missing: isWhole ? [...missing] : [] };
  }
}

/**
 * Polls the resources of each kind, one call after the other, until the connection has ended. Kinds don't wait for each
 * other, except for the first result, which has all of them.
 */
export class ResourcePoll {
  readonly #options: ResourcePollOptions;
  readonly #kinds = new Map(resourceMethods.map((methods) => [methods.kind, new PolledKind(methods)]));
  /** Runners that were registered through this tap. */
  readonly #registeredRunners = new Set<string>();
  /** Results that wait until every kind has one; undefined after that. */
  #first: Map<PolledKind, FetchedResources> | undefined = new Map();
  readonly #firstEmitted = Promise.withResolvers<void>();
  #areJobsKnown = false;

  constructor(options: ResourcePollOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { connection, jobs } = this.#options;
    void jobs.firstPoll.then(() => {
      this.#areJobsKnown = true;
    });
    const wakeAll = () => this.#wake([...this.#kinds.keys()]);
    connection.signal.addEventListener("abort", wakeAll);
    await Promise.all([...this.#kinds.values()].map((kind) => this.#pollKind(kind)));
    connection.signal.removeEventListener("abort", wakeAll);
  }

  /** Polls at once what a job's change may have changed. */
  jobChanged({ job, before }: JobChange): void {
    // The jobs of the first list have not changed now.
    if (!this.#areJobsKnown) return;
    const hasChanged = before === undefined || job.isFinished;
    // A new job's project was made or saved right before it.
    this.#wake(hasChanged ? changingKinds : ["target"]);
    // A runner that comes with a command leaves with it.
    if (hasChanged && job.runner !== undefined) this.#wake(["runner"]);
  }

  /** A runner registers itself through this tap: no job has to name it. */
  registered(runner: string): void {
    // The newest are the last.
    this.#registeredRunners.delete(runner);
    this.#registeredRunners.add(runner);
    const [oldest] = this.#registeredRunners;
    if (oldest !== undefined && this.#registeredRunners.size > maxRunners) this.#registeredRunners.delete(oldest);
  }

  /**
   * Polls at once, because a control call has changed a resource of this kind, and maybe others. Resolves when what this poll
   * showed of the kind was emitted. Never resolves after the end of the connection.
   */
  async pollNow(changed: ResourceKind): Promise<void> {
    const polled = this.#kinds.get(changed)?.rounds.next();
    this.#wake(changed === "runner" ? [changed] : changingKinds);
    await polled;
    await this.#firstEmitted.promise;
  }

  #wake(kinds: readonly ResourceKind[]): void {
    for (const kind of kinds) this.#kinds.get(kind)?.timer.wake();
  }

  async #pollKind(kind: PolledKind): Promise<void> {
    const { connection, timeoutMs } = this.#options;
    const { signal } = connection;
    const { methods, timer } = kind;
    const late = new LateNotice(() => {
      if (!signal.aborted) this.#options.emit({ $case: "late", value: { kind: methods.kind } });
    });
    const failureDelay = new FailureDelay(timer, signal);
    while (!signal.aborted) {
      kind.rounds.begin();
      const requestedAt = performance.now();
      const idsWithoutList = () => this.#namedRunners();
      const fetched = await fetchResources({ connection, methods, timeoutMs, idsWithoutList });
      if (signal.aborted) break;
      this.#take(kind, fetched);
      const tookMs = performance.now() - requestedAt;
      if (!fetched.failed) kind.rounds.succeeded();
      if (fetched.failed) {
        await failureDelay.after(fetched.failed.code);
      } else {
        failureDelay.reset();
        const ms = Math.max(tookMs, this.#delayMs(methods.kind));
        late.answered(ms + tookMs);
        await timer.delay(ms);
      }
    }
    late.stop();
  }

  #delayMs(kind: string): number {
    const delayMs = kind === "runner" ? runnerMs : kind === "target" ? this.#targetDelayMs() : otherMs;
    const since = performance.now() - this.#options.known.endedAt;
    const next = afterJobMs.find((ms) => ms > since);
    return next === undefined ? delayMs : Math.min(delayMs, next - since);
  }

  #targetDelayMs(): number {
    const jobs = this.#options.known.all();
    const runsCommand = jobs.some(({ state, command }) => state === Job_State.RUNNING && command !== undefined);
    return runsCommand ? targetMs.command : targetMs.else;
  }

  async #namedRunners(): Promise<readonly string[]> {
    const { jobs, known } = this.#options;
    await jobs.firstPoll;
    const all = known.all();
    if (jobs.failure !== undefined && all.length === 0) throw new CallFailed(status.UNAVAILABLE, jobs.failure);
    const named = all.flatMap(({ runner }) => runner ?? []);
    return [...new Set([...this.#registeredRunners, ...named])].slice(-maxRunners);
  }

  #take(kind: PolledKind, fetched: FetchedResources): void {
    if (this.#first === undefined) {
      this.#emit([[kind, fetched]]);
      return;
    }
    const first = this.#first.set(kind, fetched);
    if (first.size < this.#kinds.size) return;
    this.#first = undefined;
    this.#firstEmitted.resolve();
    const inOrder = [...this.#kinds.values()].flatMap((each): [PolledKind, FetchedResources][] => {
      const result = first.get(each);
      return result ? [[each, result]] : [];
    });
    this.#emit(inOrder);
  }

  #emit(results: readonly (readonly [PolledKind, FetchedResources])[]): void {
    const { emit } = this.#options;
    for (const [, { failed }] of results) if (failed) emit({ $case: "failed", value: failed });
    const kinds = results.flatMap(([kind, { resources, missing = [] }]) =>
      resources === undefined ? [] : [kind.part(resources, missing)],
    );
    if (kinds.length > 0) emit({ $case: "resources", value: { kinds } });
  }
}

/** Equal for the same resources with the same bytes in the same order, where the same ones are missing. */
function digestOf(resources: readonly Resource[], missing: readonly string[]): string {
  const hash = createHash("sha256");
  for (const { id, bytes } of resources) hash.update(`${id} ${bytes.byteLength} `).update(bytes);
  hash.update(JSON.stringify(missing));
  return hash.digest("base64");
}
