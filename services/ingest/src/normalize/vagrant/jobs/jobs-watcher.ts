import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { DescriptionDue } from "../../inventory/description-due.ts";
import type { ObservationOutcome, Observed, Watcher, WatcherOptions, YieldPoint } from "../../inventory/observing.ts";
import { JobLists } from "./job-lists.ts";
import { JobReports } from "./job-reports.ts";
import { JobStreams } from "./job-streams.ts";
import { JobsMemory } from "./jobs-memory.ts";
import { windowSize as serverWindow } from "./output-alignment.ts";

export type JobsWatcherOptions = {
  /** Events of the channel after which all that is known is described anew. */
  readonly describeEvery?: number;
  /** For a server that keeps another number of terminal events. */
  readonly windowSize?: number;
};

/**
 * Observes channel "jobs": job-facts.ts has what a job reports, output-alignment.ts which of its streams' output is new.
 * Jobs are recorded as they are answered, by whichever answer comes first.
 */
export class JobsWatcher implements Watcher<Observed> {
  readonly #memory: JobsMemory;
  readonly #reports: JobReports;
  readonly #lists: JobLists;
  readonly #streams: JobStreams;
  readonly #due: DescriptionDue;

  constructor(
    { mask, maskAfter, identityOf, textTtl }: WatcherOptions,
    { describeEvery = 10_000, windowSize = serverWindow }: JobsWatcherOptions = {},
  ) {
    this.#memory = new JobsMemory({ mask, maskAfter, identityOf, windowSize });
    this.#reports = new JobReports(this.#memory, mask);
    this.#lists = new JobLists(this.#memory, this.#reports);
    this.#streams = new JobStreams(this.#memory, this.#reports);
    this.#due = new DescriptionDue(describeEvery, textTtl);
  }

  *observe(_: string, observation: Observation, at: Timestamp): Generator<ObservationOutcome | YieldPoint, void> {
    for (const outcome of this.#outcomesOf(observation, at)) {
      if (outcome.what !== "yield") this.#due.count(outcome);
      yield outcome;
      if (outcome.what === "another session") return;
    }
    if (!this.#due.isDue(at)) return;
    for (const outcome of this.#memory.describe(at)) {
      if (outcome.what !== "yield") this.#due.count(outcome);
      yield outcome;
    }
  }

  connected(): void {
    this.#lists.connected();
    for (const { output } of this.#memory.byId.values()) output?.connected();
  }

  resume(event: Event): void {
    this.#lists.resumed();
    this.#due.resume(event);
    this.#memory.resume(event);
    this.#reports.resume(event);
  }

  /** The id of the command's job that is running on a project (by its resource_id), as far as is known. */
  runningCommand(project: string): string | undefined {
    for (const { id, reported, detail } of this.#memory.byId.values()) {
      const isRunning = reported.state === Job_State.RUNNING && detail?.operation === "command";
      if (isRunning && detail.scope === "project" && detail.scope_id === project) return id;
    }
    return undefined;
  }

  #outcomesOf({ result }: Observation, at: Timestamp): Observed {
    switch (result?.$case) {
      case "all":
        return this.#lists.list(result.value, at);
      case "one":
        return this.#lists.answer(result.value, at);
      case "streamed":
        return this.#streams.message(result.value, at);
      case "stream_ended":
        return this.#streams.ended(result.value, at);
      case "same":
        this.#lists.same(at);
        return [];
      case "failed":
        this.#lists.failed(result.value);
        return [];
      default:
        return [];
    }
  }
}
