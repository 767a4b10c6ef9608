import { type Event, HostDetail, type JobDetail, KnownJobs, KnownJobs_Job } from "@tapedeck/proto/tapedeck/v1/event";
import { isKind } from "@tapedeck/shared/events/kinds";
import type { Moment } from "@tapedeck/shared/time/moment";
import { inParts } from "../../in-parts.ts";
import type { Observed as Tellings } from "../../inventory/observing.ts";
import { yieldPoint } from "../../inventory/observing.ts";
import { isFinished, isOver, nothingReported, type ReportedFacts, reportedAfter } from "./job-facts.ts";
import {
  completeEvent,
  type JobOutput,
  jobOutput,
  type OutputMemory,
  type OutputOptions,
  type Ran,
} from "./job-output.ts";

/** What is remembered of a job. */
export type KnownJob = {
  readonly id: string;
  reported: ReportedFacts;
  /** Undefined: it is final. */
  output: JobOutput | undefined;
  /** As answered last. */
  ran?: Ran | undefined;
  /** As answered last, of a job that is not over. */
  detail?: JobDetail | undefined;
};

/** The jobs of a session by their ids, as an event tells them or a description. */
export type KnownJobsMemory = {
  readonly byId: ReadonlyMap<string, KnownJob>;
  readonly get: (id: string) => KnownJob;
  readonly forget: (id: string) => void;
  /** Of the channel's events. */
  readonly resume: (event: Event) => void;
  /** All of it, in parts of at most 512 KiB. */
  readonly describe: (at: Moment) => Tellings;
};

const describedType = "tapedeck.v1.KnownJobs";
const none = Buffer.alloc(0);
const final: OutputMemory = {
  ...{ written: 0n, digests: none, digests_from: 0n, stream: "", offset: 0n },
  output_final: true,
};

export function knownJobs(options: OutputOptions): KnownJobsMemory {
  const byId = new Map<string, KnownJob>();

  function get(id: string): KnownJob {
    const known = byId.get(id);
    if (known !== undefined) return known;
    const job = { id, reported: nothingReported, output: jobOutput(id, options) };
    byId.set(id, job);
    return job;
  }

  function restore({ original, observed_at }: Event): void {
    const { jobs } = KnownJobs.decode(original?.bytes ?? none);
    for (const { job, state, told, ...output } of jobs) {
      const remembered = output.output_final ? undefined : jobOutput(job, options, output);
      if (isFinished({ state }) && observed_at !== undefined) remembered?.finished(observed_at);
      byId.set(job, { id: job, reported: { state, times: told }, output: remembered });
    }
  }

  return {
    byId,
    get,
    forget: (id) => void byId.delete(id),
    resume(event) {
      const { kind, subject, detail, observed_at, occurred_at } = event;
      if (kind === "host.described") restore(event);
      else if (detail?.$case === "job" || detail?.$case === "command") {
        const job = get(subject);
        if (isKind(kind)) job.reported = reportedAfter(job.reported, { kind, detail });
        if (detail.$case === "job") remember(job, detail.value);
        if (kind === "job.started" && occurred_at !== undefined) job.ran = { from: occurred_at };
        else if (job.ran !== undefined && isFinished(job.reported)) job.ran = { until: occurred_at, ...job.ran };
        if (isFinished(job.reported) && observed_at !== undefined) job.output?.finished(observed_at);
      } else if (detail?.$case === "text") get(subject).output?.resume(event);
      else if (detail?.$case === "mirror" && detail.value.what === completeEvent) get(subject).output = undefined;
    },
    *describe(at) {
      const jobs: { readonly job: KnownJobs_Job; readonly bytes: number }[] = [];
      for (const { id, reported: told, output } of byId.values()) {
        const times = { state: told.state, told: { ...told.times } };
        const job = KnownJobs_Job.create({ job: id, ...times, ...(output?.memory() ?? final) });
        jobs.push({ job, bytes: KnownJobs_Job.encode(job).finish().length });
        yield yieldPoint;
      }
      const parts = inParts(jobs, ({ bytes }) => bytes);
      for (const [part, some] of parts.entries())
        yield {
          what: "frame",
          original: {
            type: describedType,
            bytes: KnownJobs.encode({ jobs: some.map(({ job }) => job) }).finish(),
            redacted: 0,
          },
          facts: [
            {
              kind: "host.described",
              summary: `${jobs.length} job${jobs.length === 1 ? " is" : "s are"} known`,
              detail: {
                $case: "host",
                value: HostDetail.create({ part, parts: parts.length, entries: jobs.length }),
              },
            },
          ],
          observedAt: at,
        };
    },
  };
}

/** Of a job that is not over; what only one fact says is left out. */
export function remember(job: KnownJob, detail: JobDetail): void {
  job.detail = isOver(job.reported) ? undefined : { ...detail, attempt: 0, reason: "", expire_time: undefined };
}
