import type { Event } from "@tapedeck/shared/events/codec";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { earlierOf, laterOf, messagesBefore, type Offset } from "@tapedeck/shared/log/offset";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import { followWithPauses } from "../../follow-with-pauses.ts";
import { eventsIn, type ScopeDeps, type SessionScope } from "../../session-scope.ts";
import { LogBatches } from "./log-batches.ts";
import { OutputDeduplicator } from "./output-deduplicator.ts";
import type { ScopedJobs } from "./scoped-jobs.ts";

/** How many messages of the log the search for the last lines covers at first; it grows until they are found. */
const firstWindow = 256;

export type LogPlaybackOptions = {
  readonly scope: SessionScope;
  readonly jobs: ScopedJobs;
  /** Number of entries; below 0: all. */
  readonly backlog: number;
  /** The log's end when the call was accepted. */
  readonly lastOffset: Offset;
};

/** The messages of one GetLogStream call: the backlog, then live output. See logStream. */
export class LogPlayback {
  readonly #deps: ScopeDeps;
  readonly #scope: SessionScope;
  readonly #jobs: ScopedJobs;
  readonly #backlog: number;
  /** Offset at which the backlog ends and live output begins. */
  readonly #endOffset: Offset;
  readonly #subjects: readonly string[];
  readonly #signal: AbortSignal;
  /** Starts anew with every reading of the log. */
  #deduplicator = new OutputDeduplicator();

  constructor(deps: ScopeDeps, { scope, jobs, backlog, lastOffset }: LogPlaybackOptions, signal: AbortSignal) {
    const { source, only } = scope;
    this.#deps = deps;
    this.#scope = scope;
    this.#jobs = jobs;
    this.#backlog = backlog;
    this.#endOffset = only?.ended === true ? earlierOf(lastOffset, deps.positions.own(only.end_position)) : lastOffset;
    this.#subjects = [eventSubject(source, "jobs", "job.queued"), eventSubject(source, "jobs", "terminal.written")];
    this.#signal = signal;
  }

  async *messages(): AsyncGenerator<Uint8Array, void> {
    const batches = new LogBatches();
    const start = await this.#backlogStart();
    let { skip } = start;
    for await (const recorded of this.#recordedAfter(start.afterOffset)) {
      const lines = await this.#linesOf(recorded);
      yield* batches.add(recorded, lines.slice(skip));
      skip = Math.max(0, skip - lines.length);
    }
    yield* batches.flush();
    if (this.#signal.aborted) return;
    const from = { afterOffset: laterOf(this.#endOffset, this.#scope.afterOffset), subjects: this.#subjects };
    const live = followWithPauses((options) => eventsIn(this.#deps, this.#scope, from, options), this.#signal);
    for await (const recorded of live) {
      if (recorded === undefined) yield* batches.flush();
      else yield* batches.add(recorded, await this.#linesOf(recorded));
    }
    if (!this.#signal.aborted) yield* batches.flush();
  }

  /** Where to read from, and how many lines after that are older than the backlog. */
  async #backlogStart(): Promise<{ readonly afterOffset: Offset; readonly skip: number }> {
    const { afterOffset } = this.#scope;
    if (this.#backlog < 0) return { afterOffset, skip: 0 };
    for (let window = firstWindow; ; window *= 8) {
      const begin = laterOf(afterOffset, messagesBefore(this.#endOffset, window));
      let count = 0;
      for await (const recorded of this.#recordedAfter(begin)) count += (await this.#linesOf(recorded)).length;
      if (count >= this.#backlog || begin === afterOffset || this.#signal.aborted) {
        return { afterOffset: begin, skip: Math.max(0, count - this.#backlog) };
      }
    }
  }

  async *#recordedAfter(afterOffset: Offset): AsyncGenerator<RecordedEvent, void> {
    this.#deduplicator = new OutputDeduplicator();
    if (this.#endOffset <= afterOffset) return;
    const { only } = this.#scope;
    const history = this.#deps.log().history({ afterOffset, subjects: this.#subjects }, this.#endOffset, this.#signal);
    for await (const recorded of history) {
      if (only === undefined || recorded.event.session === only.session) yield recorded;
    }
  }

  async #linesOf(recorded: RecordedEvent): Promise<readonly string[]> {
    if (recorded.event.kind !== "terminal.written") {
      this.#jobs.learn(recorded);
      return [];
    }
    const lines = printedLines(recorded.event);
    if (lines.length === 0 || !(await this.#jobs.has(recorded))) return [];
    return this.#deduplicator.isNew(recorded) ? lines : [];
  }
}

/** The lines of a terminal event; none when it prints nothing. */
function printedLines({ detail }: Event): readonly string[] {
  if (detail?.$case !== "text" || detail.value.text === "") return [];
  return detail.value.text.replace(/\r?\n$/, "").split(/\r?\n/);
}
