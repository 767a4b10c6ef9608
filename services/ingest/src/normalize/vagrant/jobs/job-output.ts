import type { Event, KnownJobs_Job } from "@tapedeck/proto/tapedeck/v1/event";
import { GetJobStreamResponse } from "@tapedeck/proto/vagrant/vagrant";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import { decodeTime } from "ulid";
import { summary } from "../../facts.ts";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import { recordedHashes } from "../../original.ts";
import { type AlignedOutput, type AlignmentMemory, OutputAlignment } from "./output-alignment.ts";
import { eventType, type OutputMasks, OutputPieces } from "./output-pieces.ts";
import { writtenFact } from "./terminal-text.ts";

/** The state of the job itself. */
export type Stage = {
  /** A job that has not started has no output. */
  readonly hasStarted: boolean;
  readonly isFinished: boolean;
  /** By the server's clock; absent: it has not reported that the job runs. */
  readonly ran?: CommandRun | undefined;
};

export type CommandRun = { readonly from: Timestamp; readonly until?: Timestamp | undefined };

export type ReceivedEvents = {
  readonly stream: string;
  /** Terminal events that the stream sent before. */
  readonly before: number;
  readonly isBuffered: boolean;
  /** Encoded GetJobStreamResponse.Terminal.Event. */
  readonly events: readonly Uint8Array[];
};

export type ReceivedEnd = {
  readonly stream: string;
  readonly before: number;
  /** The encoded GetJobStreamResponse. */
  readonly bytes: Uint8Array;
};

export type OutputMemory = AlignmentMemory & Pick<KnownJobs_Job, "output_final">;

export type OutputOptions = OutputMasks & { readonly windowSize: number };

/** A job's stream that is open. `isLate`: the job was over when it was opened; absent: unknown. */
type MissingOutput = { readonly index: number; readonly next?: number; readonly isAtLeast?: boolean };

type Opening = { readonly stream: string; readonly isLate?: boolean };

export const messageType = "hashicorp.vagrant.GetJobStreamResponse";
/** `MirrorDetail.what` of a `complete` after which nothing comes. */
export const completeEvent = "complete";
/** The tap opens the stream of a job that is over once more, and once more if that failed. */
const maxAttempts = 2;
/** The server does not know the job; the connection is gone, and most often the server with it. */
const [notFound, unavailable] = [5, 14];
/** The error code that a server itself gives a job. */
const canceled = 1;
/** Events that are masked and placed before the loop can turn. */
const batchSize = 256;
/** Terminal events a second: the output of a job is assumed to come no faster. */
const fastest = 20_000;

/**
 * A job's output, until it is final. Live output is cut when a job completes (docs/upstreams/vagrant.md#job-output), so
 * it is final only when a stream that was opened after that has given all that there is. That stream's `complete` is
 * recorded, as mirror.received: it ends the output for readers of the log.
 */
export class JobOutput {
  readonly #job: string;
  readonly #options: OutputOptions;
  readonly #pieces: OutputPieces;
  readonly #alignment: OutputAlignment;
  #opening: Opening | undefined;
  #finishedAt: Timestamp | undefined;
  #failures = 0;
  #isCutReported = false;
  #isLateReported = false;
  #heardAt: Timestamp | undefined;

  constructor(job: string, options: OutputOptions, from?: OutputMemory) {
    this.#job = job;
    this.#options = options;
    this.#pieces = new OutputPieces(options, options.windowSize);
    this.#alignment = new OutputAlignment(from, options.windowSize);
  }

  /** The stream reports a state. `isFirst`: it reported none before. `isFinished`: by that state. */
  stateReported(stream: string, { isFirst, isFinished }: { isFirst: boolean; isFinished: boolean }): void {
    const { isLate = isFirst && isFinished } = this.#openingOf(stream);
    this.#opening = { stream, isLate };
  }

  /** Concluded while it is read: one message may have tens of thousands of events. */
  *terminal(received: ReceivedEvents, stage: Stage, at: Timestamp): Generator<ObservationOutcome, void> {
    const { stream, before, isBuffered, events } = received;
    this.#openingOf(stream);
    yield* this.#late(received, stage, at);
    for (let from = 0; from === 0 || from < events.length; from += batchSize) {
      const masked = this.#pieces.mask(stream, before + from, events.slice(from, from + batchSize));
      const pieces = masked.map((event) => ({ ...event, at }));
      const aligned = this.#alignment.take({ stream, before: before + from, isReplay: isBuffered, pieces });
      for (const one of aligned) yield this.#outcomeOf(one, at);
    }
    this.#heardAt = at;
  }

  /** `isFinal`: the output has ended. */
  complete(
    { stream, before, bytes }: ReceivedEnd,
    stage: Stage,
    at: Timestamp,
  ): { readonly outcomes: readonly ObservationOutcome[]; readonly isFinal: boolean } {
    const isFinal = this.#openingOf(stream).isLate === true;
    const { output, isShort } = this.#alignment.complete(stream, before);
    const outcomes = output.map((one) => this.#outcomeOf(one, at));
    this.#heardAt = at;
    if (!isFinal) return { outcomes, isFinal };
    // A restarted server ends the jobs of its earlier life like this, without their output.
    const isInDoubt = isShort || (before === 0 && isAbandoned(bytes));
    return {
      outcomes: [...outcomes, ...(isInDoubt ? this.abandoned(stage, at) : []), this.#completed(bytes, at)],
      isFinal,
    };
  }

  /** The stream has ended with this gRPC code. */
  ended(stream: string, code: number, stage: Stage, at: Timestamp): readonly ObservationOutcome[] {
    if (this.#opening?.stream === stream) this.#opening = undefined;
    this.#alignment.lose(stream);
    if (code === 0 || !stage.isFinished) return [];
    this.#failures += 1;
    const isLost = this.#failures >= maxAttempts || code === notFound || code === unavailable;
    return isLost ? this.abandoned(stage, at) : [];
  }

  /** The job's server is gone, or does not know the job any more. */
  abandoned({ hasStarted }: Stage, at: Timestamp): readonly ObservationOutcome[] {
    // A job can write before any answer reports its start.
    if (this.#isCutReported || (!hasStarted && this.#alignment.written === 0)) return [];
    this.#isCutReported = true;
    const reason = `the output of job ${this.#job} may be cut`;
    return [this.#gap(reason, { index: this.#alignment.written }, at)];
  }

  connected(): void {
    this.#failures = 0;
  }

  /** The job was observed to be finished at this moment, or later. */
  finished(at: Timestamp): void {
    this.#finishedAt ??= at;
  }

  /** Takes in a terminal.written of the log. */
  resume({ detail, original, observed_at }: Event): void {
    if (detail?.$case !== "text" || detail.value.output === undefined || original === undefined) return;
    const { index, stream, offset } = detail.value.output;
    const [sha256 = Buffer.alloc(0)] = recordedHashes(original).map((sha) => Buffer.from(sha, "hex"));
    this.#alignment.recorded({ index: Number(index), stream, offset: Number(offset) }, sha256);
    this.#pieces.recorded(stream, Number(offset), original.bytes);
    this.#heardAt = observed_at;
  }

  memory(): OutputMemory {
    return { ...this.#alignment.memory(), output_final: false };
  }

  #openingOf(stream: string): Opening {
    if (this.#opening?.stream === stream) return this.#opening;
    this.#opening = { stream, ...(isOpenedAfter(stream, this.#finishedAt) && { isLate: true }) };
    return this.#opening;
  }

  #outcomeOf(aligned: AlignedOutput, at: Timestamp): ObservationOutcome {
    if (aligned.what === "missing") {
      const { from: index, next, isAtLeast } = aligned;
      const missing = `${next - index} terminal events of job ${this.#job} are missing`;
      const drops = `the server drops ${this.#options.windowSize} at a time`;
      return this.#gap(isAtLeast ? `at least ${missing}: ${drops}` : missing, { index, next, isAtLeast }, at);
    }
    const { piece, ...position } = aligned.placed;
    const { bytes, redacted, identity, at: observedAt } = piece;
    const original = { type: eventType, bytes, redacted, identity };
    return { what: "frame", original, facts: [writtenFact(this.#job, bytes, position)], observedAt };
  }

  #gap(reason: string, { index, next, isAtLeast }: MissingOutput, until: Timestamp): ObservationOutcome {
    const output = {
      job: this.#job,
      index: BigInt(index),
      ...(next !== undefined && { next_index: BigInt(next) }),
      ...(isAtLeast && { at_least: true }),
    };
    return { what: "gap", reason, after: this.#heardAt, until, output };
  }

  /** A first replay may come after a job that prints fast has filled windows that are gone. */
  #late(received: ReceivedEvents, { ran }: Stage, at: Timestamp): readonly ObservationOutcome[] {
    const isFirstReplay = received.isBuffered && received.events.length > 0 && this.#alignment.written === 0;
    if (this.#isLateReported || !isFirstReplay || ran === undefined) return [];
    this.#isLateReported = true;
    const { windowSize } = this.#options;
    const reason = lateReason(this.#job, lateMs(received.stream, ran, at), received.events.length, windowSize);
    return reason === undefined ? [] : [this.#gap(reason, { index: 0 }, at)];
  }

  #completed(bytes: Uint8Array, observedAt: Timestamp): ObservationOutcome {
    const original = { type: messageType, ...this.#options.mask(messageType, bytes) };
    const value = { what: completeEvent, status: "", task_id: "", subtask_id: "" };
    const line = summary(`the output of job ${this.#job} is complete`);
    const detail = { $case: "mirror", value } as const;
    return {
      what: "frame",
      original,
      observedAt,
      facts: [{ kind: "mirror.received", subject: this.#job, summary: line, detail }],
    };
  }
}

/** How long the job had run when its stream was opened. */
function lateMs(stream: string, { from, until }: CommandRun, at: Timestamp): number {
  const opened = Math.min(timeOf(stream) ?? Number.POSITIVE_INFINITY, msOfTimestamp(at));
  return Math.min(opened, until ? msOfTimestamp(until) : Number.POSITIVE_INFINITY) - msOfTimestamp(from);
}

/**
 * Why something may be missing of an output whose first replay has `events` events. Whether anything is, and how much, can't
 * be observed: a full window is dropped as a whole, so the remains of a large output may be small. Undefined where the
 * time was too short to fill one.
 */
function lateReason(job: string, ms: number, events: number, windowSize: number): string | undefined {
  const printable = Math.floor((ms / 1_000) * fastest);
  if (printable - events < windowSize) return undefined;
  const ranFor = `was first read when it had run for ${(ms / 1_000).toFixed(1)} s`;
  const keeps = `the server drops terminal events ${windowSize} at a time`;
  return `the output of job ${job} ${ranFor}, and ${keeps}: its beginning may be missing`;
}

/** The job's runner no longer responded, or the job was canceled before it had one. */
function isAbandoned(complete: Uint8Array): boolean {
  const { event } = GetJobStreamResponse.decode(complete);
  return event?.$case === "complete" && event.value.error?.code === canceled;
}

/** False in the same millisecond, as the stream may be older. */
function isOpenedAfter(stream: string, timestamp: Timestamp | undefined): boolean {
  const opened = timeOf(stream);
  return timestamp !== undefined && opened !== undefined && opened > msOfTimestamp(timestamp);
}

/** The stream's id is a ULID: it has the time of its opening, in ms, by the clock of the observations. */
function timeOf(stream: string): number | undefined {
  try {
    return decodeTime(stream);
  } catch {
    return undefined;
  }
}
