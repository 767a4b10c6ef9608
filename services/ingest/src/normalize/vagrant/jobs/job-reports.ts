import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Job } from "@tapedeck/proto/vagrant/vagrant";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../fact.ts";
import { unreadable } from "../../facts.ts";
import type { FrameOutcome } from "../../inventory/inventory-rules.ts";
import type { ObservationOutcome, WatcherOptions } from "../../inventory/observing.ts";
import { shaOf } from "../../original.ts";
import { jobDetail, unknownJob } from "./job-detail.ts";
import { isFinished, isOver, jobFacts, lostFacts, reportedAfter, wasReported } from "./job-facts.ts";
import { type CommandRun, messageType, type Stage } from "./job-output.ts";
import type { JobEntry } from "./job-wire.ts";
import { type JobsMemory, type KnownJob, remember } from "./jobs-memory.ts";
import { RepeatedReports } from "./repeated-reports.ts";

const jobType = "hashicorp.vagrant.Job";
/** Ids in events have at most 1,000 characters, and a resumed recorder knows jobs by these. */
const longestId = 200;

/**
 * The facts of a single job from its answers. Whichever answer comes first reports: a list, a stream or a single job.
 */
export class JobReports {
  readonly #memory: JobsMemory;
  readonly #mask: WatcherOptions["mask"];
  readonly #repeated = new RepeatedReports();
  /** Jobs that could not be read, as answered last: by id, or by digest where no job can have such an id. */
  readonly #broken = new Map<string, Buffer>();

  constructor(memory: JobsMemory, mask: WatcherOptions["mask"]) {
    this.#memory = memory;
    this.#mask = mask;
  }

  resume(event: Event): void {
    this.#repeated.resume(event);
  }

  answered({ id, bytes }: JobEntry, at: Timestamp, stale = false): readonly ObservationOutcome[] {
    const before = this.#memory.byId.get(id);
    if (before !== undefined && isFinished(before.reported) && isOver(before.reported)) return [];
    const key = brokenKey({ id, bytes });
    const broken = this.#broken.get(key);
    if (broken?.equals(bytes)) return [];
    try {
      if (!isUsableId(id)) throw new Error(`its id has ${id.length} characters`);
      const original = { type: jobType, ...this.#mask(jobType, bytes) };
      const job = Job.decode(original.bytes);
      const known = this.#memory.get(id);
      known.ran = ranIn(job) ?? known.ran;
      const outcomes = report(known, jobFacts(job, id, known.reported, { stale }), at, original);
      // An answer older than the record is not about the present.
      if (known.reported.state === job.state) remember(known, jobDetail(job, id));
      this.#broken.delete(key);
      return outcomes;
    } catch (cause) {
      this.#broken.set(key, Buffer.from(bytes));
      return this.unreadable(jobType, bytes, cause, at);
    }
  }

  /** The server does not know the job any more. */
  lost(job: KnownJob, at: Timestamp): readonly ObservationOutcome[] {
    const facts = lostFacts(job.detail ?? unknownJob(job.id, job.reported.state), job.reported);
    if (facts.length === 0) return [];
    // In this order a recorder that is stopped between the two records the first one twice, and loses nothing.
    const cut = job.output?.abandoned(stageOf(job), at) ?? [];
    job.detail = undefined;
    return [...cut, ...report(job, facts, at)];
  }

  unreadable(type: string, bytes: Uint8Array, cause: unknown, at: Timestamp): readonly ObservationOutcome[] {
    const original = { type, ...this.#mask(type, bytes) };
    return this.#repeated.once({ what: "frame", original, facts: [unreadable(bytes, cause)], observedAt: at }, at);
  }

  /** A message of a job's stream that this version does not know. */
  unknownMessage(fact: Fact, bytes: Uint8Array, at: Timestamp): readonly ObservationOutcome[] {
    const original = { type: messageType, ...this.#mask(messageType, bytes) };
    return this.#repeated.once({ what: "frame", original, facts: [fact], observedAt: at }, at);
  }

  /** Forgets the unreadable jobs that the server does not list any more. */
  listed(entries: readonly JobEntry[]): void {
    const keys = new Set(entries.map(brokenKey));
    for (const key of this.#broken.keys()) if (!keys.has(key)) this.#broken.delete(key);
  }
}

export function stageOf({ reported, ran }: KnownJob): Stage {
  return { hasStarted: wasReported(reported, "job.started"), isFinished: isFinished(reported), ran };
}

export function isUsableId(id: string): boolean {
  return id !== "" && id.length <= longestId;
}

function report(
  job: KnownJob,
  facts: readonly Fact[],
  observedAt: Timestamp,
  original?: FrameOutcome["original"],
): readonly FrameOutcome[] {
  const [first, ...rest] = facts;
  if (first === undefined) return [];
  for (const fact of facts) job.reported = reportedAfter(job.reported, fact);
  if (isFinished(job.reported)) job.output?.finished(observedAt);
  return [{ what: "frame", ...(original && { original }), facts: [first, ...rest], observedAt }];
}

function brokenKey({ id, bytes }: JobEntry): string {
  return isUsableId(id) ? id : shaOf(bytes);
}

function ranIn({ ack_time, complete_time, cancel_time, state }: Job): CommandRun | undefined {
  const from = validTimestamp(ack_time);
  const until = isFinished({ state }) ? validTimestamp(complete_time ?? cancel_time) : undefined;
  return from && { from, until };
}
