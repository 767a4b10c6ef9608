import { type Event, type JobDetail, KnownJobs, KnownJobs_Job } from "@tapedeck/proto/tapedeck/v1/event";
import { isKind } from "@tapedeck/shared/events/kinds";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { describedInParts } from "../../inventory/description.ts";
import type { FrameOutcome } from "../../inventory/inventory-rules.ts";
import type { YieldPoint } from "../../inventory/observing.ts";
import { yieldPoint } from "../../inventory/observing.ts";
import { isFinished, isOver, nothingReported, type ReportedFacts, reportedAfter } from "./job-facts.ts";
import { type CommandRun, completeEvent, JobOutput, type OutputMemory, type OutputOptions } from "./job-output.ts";

/** The memory of a job. */
export type KnownJob = {
  readonly id: string;
  reported: ReportedFacts;
  /** Undefined: it is final. */
  output: JobOutput | undefined;
  /** The run as answered last. */
  ran?: CommandRun | undefined;
  /** The detail as answered last, for a job that is not over. */
  detail?: JobDetail | undefined;
};

const describedType = "tapedeck.v1.KnownJobs";
const none = Buffer.alloc(0);
const final: OutputMemory = {
  written: 0n,
  digests: none,
  digests_from: 0n,
  stream: "",
  offset: 0n,
  output_final: true,
};

/** The jobs of a session by their ids, as an event or a description names them. */
export class JobsMemory {
  readonly #options: OutputOptions;
  readonly #byId = new Map<string, KnownJob>();

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  get byId(): ReadonlyMap<string, KnownJob> {
    return this.#byId;
  }

  get(id: string): KnownJob {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const job = { id, reported: nothingReported, output: new JobOutput(id, this.#options) };
    this.#byId.set(id, job);
    return job;
  }

  forget(id: string): void {
    this.#byId.delete(id);
  }

  /** Takes in an event of the channel. */
  resume(event: Event): void {
    const { kind, subject, detail } = event;
    if (kind === "inventory.described") this.#restore(event);
    else if (detail?.$case === "job" || detail?.$case === "command") this.#resumeJob(event, detail);
    else if (detail?.$case === "text") this.get(subject).output?.resume(event);
    else if (detail?.$case === "mirror" && detail.value.what === completeEvent) this.get(subject).output = undefined;
  }

  /** All of it, in parts of at most 512 KiB. */
  *describe(at: Timestamp): Generator<FrameOutcome | YieldPoint, void> {
    const entries: { readonly job: KnownJobs_Job; readonly bytes: number }[] = [];
    for (const { id, reported, output } of this.#byId.values()) {
      const times = { state: reported.state, event_counts: { ...reported.times } };
      const job = KnownJobs_Job.create({ job: id, ...times, ...(output?.memory() ?? final) });
      entries.push({ job, bytes: KnownJobs_Job.encode(job).finish().length });
      yield yieldPoint;
    }
    yield* describedInParts(
      {
        entries,
        bytesOf: ({ bytes }) => bytes,
        summary: `${entries.length} job${entries.length === 1 ? " is" : "s are"} known`,
        originalOf: (held) => ({
          type: describedType,
          bytes: KnownJobs.encode({ jobs: held.map(({ job }) => job) }).finish(),
          redacted: 0,
        }),
      },
      at,
    );
  }

  #resumeJob({ kind, subject, observed_at, occurred_at }: Event, detail: JobEventDetail): void {
    const job = this.get(subject);
    if (isKind(kind)) job.reported = reportedAfter(job.reported, { kind, detail });
    if (detail.$case === "job") remember(job, detail.value);
    if (kind === "job.started" && occurred_at !== undefined) job.ran = { from: occurred_at };
    else if (job.ran !== undefined && isFinished(job.reported)) job.ran = { until: occurred_at, ...job.ran };
    if (isFinished(job.reported) && observed_at !== undefined) job.output?.finished(observed_at);
  }

  #restore({ original, observed_at }: Event): void {
    const { jobs } = KnownJobs.decode(original?.bytes ?? none);
    for (const { job, state, event_counts: times, ...memory } of jobs) {
      const output = memory.output_final ? undefined : new JobOutput(job, this.#options, memory);
      if (isFinished({ state }) && observed_at !== undefined) output?.finished(observed_at);
      this.#byId.set(job, { id: job, reported: { state, times }, output });
    }
  }
}

type JobEventDetail = Extract<NonNullable<Event["detail"]>, { $case: "job" | "command" }>;

/** Remembers the detail of a job that is not over, without what only one fact needs. */
export function remember(job: KnownJob, detail: JobDetail): void {
  job.detail = isOver(job.reported) ? undefined : { ...detail, attempt: 0, reason: "", expire_time: undefined };
}
