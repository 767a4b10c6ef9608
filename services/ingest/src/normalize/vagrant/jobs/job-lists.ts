import type { Observation_Failed, Observation_One } from "@tapedeck/proto/tapedeck/v1/observation";
import { Job } from "@tapedeck/proto/vagrant/vagrant";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { message as errorText } from "../../facts.ts";
import type { Observed, Outcomes, YieldPoint } from "../../inventory/observing.ts";
import { yieldPoint } from "../../inventory/observing.ts";
import { isFinished, wasReported } from "./job-facts.ts";
import { type JobReports, stageOf } from "./job-reports.ts";
import { type JobEntry, jobsIn } from "./job-wire.ts";
import type { JobsMemory } from "./jobs-memory.ts";
import { staleJobs } from "./stale-jobs.ts";

const listType = "hashicorp.vagrant.ListJobsResponse";
const notFound = 5;

/**
 * Lists of a server's jobs, and answers about single ones. A server keeps its finished jobs, so a server that does not
 * know the newest of them any more is another one.
 */
export class JobLists {
  readonly #memory: JobsMemory;
  readonly #reports: JobReports;
  /** Nothing of this session has been observed, by any recorder. */
  #isFirst = true;
  /** It may be another server since the last observation. */
  #isUnsure = false;
  #listedAt: Timestamp | undefined;
  /** Why there was no list since then: jobs that came meanwhile are not known. */
  #outage: string | undefined;
  /** The last list, where it could not be read. */
  #broken: Buffer | undefined;

  constructor(memory: JobsMemory, reports: JobReports) {
    this.#memory = memory;
    this.#reports = reports;
  }

  connected(): void {
    this.#isUnsure = this.#newestFinished() !== undefined;
  }

  resumed(): void {
    this.#isFirst = false;
  }

  same(at: Timestamp): void {
    if (!this.#isUnsure) this.#succeeded(at);
  }

  failed({ message, code }: Observation_Failed): void {
    // Until the server is known to be the same, its failures show nothing about the one that was observed before.
    if (!this.#isUnsure) this.#outage ??= errorText(message) || `code ${code}`;
  }

  /** Judges one job after the other: to read and mask a thousand large ones takes many seconds. */
  *list(bytes: Uint8Array, at: Timestamp): Outcomes {
    let entries: readonly JobEntry[];
    try {
      entries = jobsIn(bytes);
    } catch (cause) {
      if (this.#broken?.equals(bytes)) return;
      this.#broken = Buffer.from(bytes);
      return yield* this.#reports.unreadable(listType, bytes, cause, at);
    }
    const listed = new Set(entries.map(({ id }) => id));
    const newest = this.#isUnsure ? this.#newestFinished() : undefined;
    if (newest !== undefined && !listed.has(newest)) return yield* this.#anotherSession(listed, at);
    this.#isUnsure = false;
    this.#succeeded(at);
    const stale = this.#isFirst ? staleJobs(yield* readableIn(entries), at) : undefined;
    this.#isFirst = false;
    this.#reports.listed(entries);
    for (const entry of entries) {
      yield* this.#reports.answered(entry, at, stale?.has(entry.id));
      yield yieldPoint;
    }
    yield* this.#absent(listed, at);
  }

  /** Judges the answer about one job that was asked for. */
  answer({ id, code, bytes, message }: Observation_One, at: Timestamp): Observed {
    if (code === 0) {
      if (this.#isUnsure && id === this.#newestFinished()) this.#isUnsure = false;
      return this.#reports.answered({ id, bytes }, at);
    }
    const job = this.#memory.byId.get(id);
    if (job === undefined || code !== notFound) return [];
    if (!isFinished(job.reported)) return this.#reports.lost(job, at);
    // A job's row can be deleted on a running server.
    const isUnknown = !message.includes("record not found");
    return this.#isUnsure && isUnknown && id === this.#newestFinished() ? this.#anotherSession(new Set(), at) : [];
  }

  /** Jobs that came while there was no list stay listed, as long as the server is the same. */
  #succeeded(at: Timestamp): void {
    this.#listedAt = at;
    this.#outage = undefined;
  }

  *#absent(listed: ReadonlySet<string>, at: Timestamp): Outcomes {
    for (const job of [...this.#memory.byId.values()]) {
      yield yieldPoint;
      if (listed.has(job.id)) continue;
      if (wasReported(job.reported, "job.queued") && !isFinished(job.reported)) yield* this.#reports.lost(job, at);
      else {
        this.#memory.forget(job.id);
        yield* job.output?.abandoned(stageOf(job), at) ?? [];
      }
    }
  }

  /** `listed`: jobs that the new server knows, too. */
  *#anotherSession(listed: ReadonlySet<string>, at: Timestamp): Outcomes {
    if (this.#outage !== undefined) {
      const reason = `the jobs could not be listed: ${this.#outage}`;
      yield { what: "gap", reason, after: this.#listedAt, until: at };
    }
    for (const job of [...this.#memory.byId.values()]) {
      yield yieldPoint;
      const isLost = !listed.has(job.id) && !isFinished(job.reported);
      yield* isLost ? this.#reports.lost(job, at) : (job.output?.abandoned(stageOf(job), at) ?? []);
    }
    yield { what: "another session" };
  }

  #newestFinished(): string | undefined {
    let newest: string | undefined;
    for (const { id, reported } of this.#memory.byId.values()) {
      if (isFinished(reported) && (newest === undefined || id > newest)) newest = id;
    }
    return newest;
  }
}

function* readableIn(entries: readonly JobEntry[]): Generator<YieldPoint, readonly Job[]> {
  const jobs: Job[] = [];
  for (const { bytes } of entries) {
    yield yieldPoint;
    try {
      jobs.push(Job.decode(bytes));
    } catch {
      // It is recorded as unreadable when it is judged.
    }
  }
  return jobs;
}
