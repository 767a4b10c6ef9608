import { Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { fieldsOf } from "@tapedeck/shared/descriptors/message-fields";

/** The parts of a job that a tap needs to make the right calls. Small, because there may be 10,000 jobs. */
export type TappedJob = {
  readonly id: string;
  readonly state: Job_State;
  readonly isFinished: boolean;
  /** "up"; undefined for jobs that are not a command. */
  readonly command: string | undefined;
  /** The runner that the job names. */
  readonly runner: string | undefined;
};

/** A job that is new, or whose state has changed since `before`. */
export type JobChange = { readonly job: TappedJob; readonly before: TappedJob | undefined };

/** The jobs of a server. Job ids are globally unique, so all of this stays true on the next connection. */
export class TappedJobs {
  readonly #onChange: (change: JobChange) => void;
  #jobs = new Map<string, TappedJob>();
  #recorded = new Set<string>();
  #endedAt = Number.NEGATIVE_INFINITY;
  #isFirstList = true;

  constructor(onChange: (change: JobChange) => void) {
    this.#onChange = onChange;
  }

  /** In the server's order. */
  all(): readonly TappedJob[] {
    return [...this.#jobs.values()];
  }

  get(id: string): TappedJob | undefined {
    return this.#jobs.get(id);
  }

  /** When a job last ended, in ms of `performance.now()`. */
  get endedAt(): number {
    return this.#endedAt;
  }

  /** Takes an answer of _ListJobs and forgets all other jobs. A list that can't be read is ignored. */
  updateAll(list: Uint8Array): void {
    const entries = jobEntries(list);
    if (entries === undefined) return;
    const before = this.#jobs;
    this.#jobs = new Map();
    for (const { id, bytes } of entries) {
      const known = before.get(id);
      // A finished job does not change any more and may be large.
      const job = known?.isFinished ? known : readJob(bytes);
      if (job !== undefined) this.#set(job, known);
    }
    this.#isFirstList = false;
    this.#recorded = new Set([...this.#recorded].filter((id) => this.#jobs.has(id)));
  }

  /** Takes a hashicorp.vagrant.Job and gives its contents. */
  update(bytes: Uint8Array): TappedJob | undefined {
    const job = readJob(bytes);
    const before = this.#jobs.get(job?.id ?? "");
    // An answer may be older than the end of the job that is known already.
    if (job !== undefined && !before?.isFinished) this.#set(job, before);
    return job;
  }

  /** True when everything that the job will ever write has been emitted. */
  isRecorded(id: string): boolean {
    return this.#recorded.has(id);
  }

  setRecorded(id: string): void {
    this.#recorded.add(id);
  }

  #set(job: TappedJob, before: TappedJob | undefined): void {
    this.#jobs.set(job.id, job);
    if (before?.state === job.state) return;
    // The first list does not show how long ago its jobs ended.
    if (job.isFinished && !this.#isFirstList) this.#endedAt = performance.now();
    this.#onChange({ job, before });
  }
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

type JobEntry = { readonly id: string; readonly bytes: Buffer };

const jobsField = 1;
const idField = 1;

/** The jobs of a ListJobsResponse, of which only the ids are decoded. Undefined for bytes that are not a list. */
function jobEntries(list: Uint8Array): readonly JobEntry[] | undefined {
  try {
    return fieldsOf(list, jobsField).map((bytes) => {
      return { id: fieldsOf(bytes, idField).at(-1)?.toString("utf8") ?? "", bytes };
    });
  } catch {
    return undefined;
  }
}
