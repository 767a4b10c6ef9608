import { Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { fieldsOf } from "./message-fields.ts";

/** What a tap has to know of a job so that it can ask the right questions; few bytes, as there may be 10,000. */
export type TappedJob = {
  readonly id: string;
  readonly state: Job_State;
  readonly isFinished: boolean;
  /** "up"; undefined for jobs that are no command. */
  readonly command: string | undefined;
  /** The runner that it names. */
  readonly runner: string | undefined;
};

/** A job that is new, or whose state has changed since `before`. */
export type JobNews = { readonly job: TappedJob; readonly before: TappedJob | undefined };

export type TappedJobs = {
  /** In the server's order. */
  readonly all: () => readonly TappedJob[];
  readonly get: (id: string) => TappedJob | undefined;
  /** An answer of _ListJobs: others than these are forgotten. Nothing is learned of what can't be read. */
  readonly seeAll: (list: Uint8Array) => void;
  /** A hashicorp.vagrant.Job; gives what it says. */
  readonly see: (bytes: Uint8Array) => TappedJob | undefined;
  /** When one was last seen to have ended, as performance.now() tells it. */
  readonly endedAt: () => number;
  /** Whether all that the job will ever write has been told. */
  readonly isTold: (id: string) => boolean;
  readonly setTold: (id: string) => void;
};

export function tappedJobs(onNews: (news: JobNews) => void): TappedJobs {
  let jobs = new Map<string, TappedJob>();
  let told = new Set<string>();
  let endedAt = Number.NEGATIVE_INFINITY;
  let isFirst = true;

  function learn(job: TappedJob, before: TappedJob | undefined): void {
    jobs.set(job.id, job);
    if (before?.state === job.state) return;
    // Nobody knows when those of the first list did.
    if (job.isFinished && !isFirst) endedAt = performance.now();
    onNews({ job, before });
  }

  return {
    all: () => [...jobs.values()],
    get: (id) => jobs.get(id),
    seeAll(list) {
      const entries = jobEntries(list);
      if (entries === undefined) return;
      const before = jobs;
      jobs = new Map();
      for (const { id, bytes } of entries) {
        const known = before.get(id);
        // It does not change any more, and may be large.
        const job = known?.isFinished ? known : readJob(bytes);
        if (job !== undefined) learn(job, known);
      }
      isFirst = false;
      told = new Set([...told].filter((id) => jobs.has(id)));
    },
    see(bytes) {
      const job = readJob(bytes);
      const before = jobs.get(job?.id ?? "");
      // What was asked before it was over may be answered after.
      if (job !== undefined && !before?.isFinished) learn(job, before);
      return job;
    },
    endedAt: () => endedAt,
    isTold: (id) => told.has(id),
    setTold: (id) => void told.add(id),
  };
}

function readJob(bytes: Uint8Array): TappedJob | undefined {
  try {
    const { id, state, operation, target_runner } = Job.decode(bytes);
    if (id === "") return undefined;
    return {
      id,
      state,
      isFinished: state === Job_State.SUCCESS || state === Job_State.ERROR,
      command: operation?.$case === "command" ? operation.value.command : undefined,
      runner: target_runner?.target?.$case === "id" ? target_runner.target.value.id : undefined,
    };
  } catch {
    return undefined;
  }
}

type Entry = { readonly id: string; readonly bytes: Buffer };

const jobsField = 1;
const idField = 1;

/** The jobs of a ListJobsResponse; nothing but their ids is decoded. Undefined for bytes that are none. */
function jobEntries(list: Uint8Array): readonly Entry[] | undefined {
  try {
    return fieldsOf(list, jobsField).map((bytes) => {
      return { id: fieldsOf(bytes, idField).at(-1)?.toString("utf8") ?? "", bytes };
    });
  } catch {
    return undefined;
  }
}
