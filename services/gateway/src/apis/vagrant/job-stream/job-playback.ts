import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { beyondAll, laterOf, mayHoldEvents, type Offset } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { CallContext } from "../../../call-context.ts";
import { followWithPauses, type OpenReader } from "../../follow-with-pauses.ts";
import { readCollection } from "../../read-collection.ts";
import type { ScopeDeps } from "../../session-scope.ts";
import { UpstreamError } from "../../upstream-error.ts";
import type { FoundJob } from "../jobs.ts";
import { MessageBatch } from "../message-batch.ts";
import { jobSpans, pastOfJob } from "./job-past.ts";
import {
  isClosed,
  isOver,
  type JobProgress,
  type JobSelection,
  type JobUpdate,
  jobSubjects,
  jobUpdate,
  noProgress,
  progressAfter,
} from "./job-progress.ts";
import {
  completeMessage,
  isFinished,
  type JobVersion,
  jobVersion,
  openMessage,
  stateMessage,
  terminalMessage,
} from "./messages.ts";

export type JobPlaybackOptions = {
  readonly job: string;
  /** How long a finished job must be silent before its output counts as over, without another sign of its end. */
  readonly graceMs: number;
};

const leastWaitMs = 20;
/** How long a state waits at most for the tables, and between two questions to tables that are not ready. */
const maxReadableMs = 30_000;
const retryMs = 200;
const unavailable = 14;

/** The messages of one GetJobStream call: the recorded past of a job, then its live events. See jobStream. */
export class JobPlayback {
  readonly #deps: ScopeDeps;
  readonly #context: CallContext;
  readonly #selection: JobSelection;
  readonly #graceMs: number;
  readonly #source: SourceName;
  /** Offset up to which everything is past. */
  readonly #pastOffset: Offset;
  /** Offset of the version that query found. */
  readonly #versionOffset: Offset;
  #version: JobVersion;
  #progress: JobProgress;
  /** Index of the next output to send: the log can have an index twice. */
  #nextIndex = 0;

  constructor(deps: ScopeDeps, found: FoundJob, { job, graceMs }: JobPlaybackOptions, context: CallContext) {
    this.#deps = deps;
    this.#context = context;
    this.#selection = { job, session: context.session };
    this.#graceMs = graceMs;
    this.#source = found.source;
    this.#pastOffset = deps.positions.own(found.head.position);
    this.#versionOffset = deps.positions.own(found.position);
    this.#version = jobVersion(found.bytes);
    this.#progress = { ...noProgress, isFinished: isFinished(this.#version.state) };
  }

  async *messages(): AsyncGenerator<Uint8Array, void> {
    yield openMessage();
    yield stateMessage(Job_State.UNKNOWN, this.#version);
    const isClosedInPast = yield* this.#past();
    // When the log has lost all events of the job, no more can come.
    const hasEvents = this.#progress.session !== "";
    if (!isClosedInPast && hasEvents && !isOver(this.#progress)) yield* this.#live();
    if (this.#context.signal.aborted) return;
    if (!this.#progress.isFinished && !isFinished(this.#version.state)) throw serverClosed(this.#selection.job);
    yield completeMessage(this.#version);
  }

  /** Returns whether the job was closed before the past ended. */
  async *#past(): AsyncGenerator<Uint8Array, boolean> {
    const [deps, source, untilOffset] = [this.#deps, this.#source, this.#pastOffset];
    const { signal } = this.#context;
    const spans = await jobSpans(deps, { job: this.#selection.job, source, untilOffset }, this.#context);
    const buffered = new MessageBatch((events) => terminalMessage(events, true));
    let isDone = false;
    for await (const recorded of pastOfJob({ log: deps.log(), source, spans, untilOffset }, signal)) {
      const isNewest = this.#progress.isFinished || recorded.offset > this.#versionOffset;
      isDone = isNewest && isClosed(this.#progress);
      if (isDone) break;
      this.#progress = progressAfter(this.#progress, recorded, this.#selection);
      yield* this.#output(jobUpdate(recorded, this.#selection), buffered);
    }
    yield* buffered.flush();
    return isDone;
  }

  async *#live(): AsyncGenerator<Uint8Array, void> {
    const { signal } = this.#context;
    const from = { afterOffset: this.#pastOffset, subjects: jobSubjects(this.#source) };
    const live = new MessageBatch((events) => terminalMessage(events, false));
    /** Everything of the source's jobs up to here was read. */
    let readOffset = this.#pastOffset;
    let quietAt = this.#quietTime();
    const quietInMs = () =>
      this.#progress.isFinished ? Math.max(quietAt - performance.now(), leastWaitMs) : undefined;
    const follow: OpenReader = (options) =>
      this.#deps.log().follow(from, {
        ...options,
        reached(offset) {
          readOffset = laterOf(readOffset, offset);
          options.reached();
        },
      });
    const events = followWithPauses(follow, signal, quietInMs);
    for await (const recorded of events) {
      if (recorded === undefined) {
        yield* live.flush();
        if (this.#isSilent(quietAt) && !(await this.#hasMoreAfter(readOffset))) return;
        continue;
      }
      readOffset = laterOf(readOffset, recorded.offset);
      const { lastEventAt } = this.#progress;
      yield* this.#liveEvent(recorded, live);
      if (this.#progress.lastEventAt !== lastEventAt) quietAt = this.#quietTime();
      if (isOver(this.#progress)) break;
    }
    if (!signal.aborted) yield* live.flush();
  }

  async *#liveEvent(recorded: RecordedEvent, live: MessageBatch): AsyncGenerator<Uint8Array, void> {
    this.#progress = progressAfter(this.#progress, recorded, this.#selection);
    const update = jobUpdate(recorded, this.#selection);
    if (update?.type !== "version") {
      yield* this.#output(update, live);
      return;
    }
    const { state, canceling } = this.#version;
    this.#version = update.version;
    if (this.#version.state === state && this.#version.canceling === canceling) return;
    yield* live.flush();
    await this.#readable(recorded.offset);
    yield stateMessage(state, this.#version);
  }

  /**
   * Waits until GetJob answers with the state that is sent next. A client that reads the job once it has heard of its end
   * must not find it as it was before: the stream reads the log, and the tables are behind it.
   */
  async #readable(offset: Offset): Promise<void> {
    const [deps, source, minPosition] = [this.#deps, this.#source, this.#deps.positions.written(offset)];
    const { signal } = this.#context;
    const end = performance.now() + maxReadableMs;
    while (!signal.aborted && performance.now() < end) {
      try {
        await readCollection(deps, "vagrant", "jobs", { ...this.#context, source, minPosition }, this.#selection.job);
        return;
      } catch (error) {
        // The call has waited for tables that are late. Other failures are not the stream's.
        if (!(error instanceof TapedeckError) || error.code !== "not_ready") return;
        await delay(retryMs, signal);
      }
    }
  }

  *#output(update: JobUpdate | undefined, batch: MessageBatch): Generator<Uint8Array, void> {
    if (update?.type === "message") {
      yield* batch.flush();
      yield update.bytes;
    } else if (update?.type === "output") {
      const index = update.index ?? this.#nextIndex;
      if (index < this.#nextIndex) return;
      this.#nextIndex = index + 1;
      yield* batch.add(update.event);
    }
  }

  /** The job is finished, and no more output of it is to be expected. */
  #isSilent(quietAt: number): boolean {
    const { isFinished, isCut } = this.#progress;
    return isFinished && (isCut || !this.#version.hasStarted || performance.now() >= quietAt);
  }

  /** By performance.now(). The grace begins with the last event of the job, however late this reader came to it. */
  #quietTime(): number {
    const left = this.#progress.lastEventAt + this.#graceMs - Date.now();
    return performance.now() + Math.min(this.#graceMs, Math.max(0, left));
  }

  /** Asks the log's leader, because the tail may be behind it. A log that is away may have more. */
  async #hasMoreAfter(offset: Offset): Promise<boolean> {
    const last = await this.#deps
      .log()
      .lastMatch(jobSubjects(this.#source))
      .catch(() => beyondAll);
    return mayHoldEvents(offset, last);
  }
}

function serverClosed(job: string): UpstreamError {
  return new UpstreamError(unavailable, `the Vagrant server ended before job ${job} was finished`);
}
