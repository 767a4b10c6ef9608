import type { Event, KnownJobs_Job } from "@tapedeck/proto/tapedeck/v1/event";
import { GetJobStreamResponse } from "@tapedeck/proto/vagrant/vagrant";
import type { Moment } from "@tapedeck/shared/time/moment";
import { msOfMoment } from "@tapedeck/shared/time/moment";
import { decodeTime } from "ulid";
import { recordedSha } from "../../../record/frames/original.ts";
import { summary } from "../../facts.ts";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import { outputAlignment, type Step } from "./output-alignment.ts";
import { eventType, type OutputMasks, outputPieces } from "./output-pieces.ts";
import { writtenFact } from "./terminal-text.ts";

/**
 * A job's output, until it is final. Live output is cut when a job completes, so it is final only when a stream that was
 * opened after that has given all that there is. That stream's `complete` is recorded, as mirror.received: it ends the
 * output for whoever reads the log.
 */
export type JobOutput = {
  /** A state that the stream has told. `isFirst`: none before. `isFinished`: as it says itself. */
  readonly told: (stream: string, state: { readonly isFirst: boolean; readonly isFinished: boolean }) => void;
  /** Concluded while it is read: one message may have tens of thousands of events. */
  readonly terminal: (given: GivenEvents, stage: Stage, at: Moment) => Iterable<ObservationOutcome>;
  /** `isFinal`: this was the last that was to be heard of the output. */
  readonly complete: (
    given: GivenEnd,
    stage: Stage,
    at: Moment,
  ) => { readonly seen: readonly ObservationOutcome[]; readonly isFinal: boolean };
  /** `code`: gRPC's. */
  readonly ended: (stream: string, code: number, stage: Stage, at: Moment) => readonly ObservationOutcome[];
  /** Its server is gone, or knows the job no more. */
  readonly abandoned: (stage: Stage, at: Moment) => readonly ObservationOutcome[];
  readonly connected: () => void;
  /** When the job was seen to be finished, or later. */
  readonly finished: (at: Moment) => void;
  /** From a terminal.written. */
  readonly resume: (event: Event) => void;
  readonly memory: () => OutputMemory;
};

/** What is known of the job itself. */
export type Stage = {
  /** Without that there is no output. */
  readonly hasStarted: boolean;
  readonly isFinished: boolean;
  /** By the server's clock; absent: it has not said that it runs. */
  readonly ran?: Ran | undefined;
};

export type Ran = { readonly from: Moment; readonly until?: Moment | undefined };

export type GivenEvents = {
  readonly stream: string;
  /** Terminal events that the stream gave before. */
  readonly before: number;
  readonly isBuffered: boolean;
  /** Encoded GetJobStreamResponse.Terminal.Event. */
  readonly events: readonly Uint8Array[];
};

export type GivenEnd = {
  readonly stream: string;
  readonly before: number;
  /** The encoded GetJobStreamResponse. */
  readonly bytes: Uint8Array;
};

export type OutputMemory = Pick<
  KnownJobs_Job,
  "written" | "digests" | "digests_from" | "stream" | "offset" | "output_final"
>;

export type OutputOptions = OutputMasks & { readonly windowSize: number };

export const messageType = "hashicorp.vagrant.GetJobStreamResponse";
/** `MirrorDetail.what` of a `complete` after which nothing comes. */
export const completeEvent = "complete";
/** The tap opens the stream of a job that is over once more, and once more if that failed. */
const mostAttempts = 2;
/** The server does not know the job; the connection is gone, and most often the server with it. */
const [notFound, unavailable] = [5, 14];
/** What a server itself gives as the error of a job. */
const canceled = 1;
/** So many events are masked and placed in one go. */
const atOnce = 256;
/** Terminal events a second: so fast the output of a job is taken to come at most. */
const fastest = 20_000;

export function jobOutput(job: string, options: OutputOptions, from?: OutputMemory): JobOutput {
  const { mask, windowSize } = options;
  const masked = outputPieces(options, windowSize);
  const alignment = outputAlignment(from, windowSize);
  /** The stream that is open, and whether the job was over when it was opened; undefined: nobody knows. */
  let opening: { readonly stream: string; readonly isLate?: boolean } | undefined;
  let finishedAt: Moment | undefined;
  let failures = 0;
  let isToldCut = false;
  let isToldLate = false;
  let heardAt: Moment | undefined;

  function openingOf(stream: string): { readonly stream: string; readonly isLate?: boolean } {
    if (opening?.stream !== stream) opening = { stream, ...(isOpenedAfter(stream, finishedAt) && { isLate: true }) };
    return opening;
  }

  function seenOf(step: Step, at: Moment): ObservationOutcome {
    if ("missing" in step) {
      const { from: index, next } = step.missing;
      return gap(`${next - index} terminal events of job ${job} are missing`, { index, next }, at);
    }
    const { piece, ...place } = step.placed;
    const { bytes, redacted, at: observedAt } = piece;
    const original = { type: eventType, bytes, redacted };
    return { what: "frame", original, facts: [writtenFact(job, bytes, place)], observedAt };
  }

  function gap(reason: string, { index, next }: { index: number; next?: number }, until: Moment): ObservationOutcome {
    const output = { job, index: BigInt(index), ...(next !== undefined && { next_index: BigInt(next) }) };
    return { what: "gap", reason, after: heardAt, until, output };
  }

  function cut({ hasStarted }: Stage, at: Moment): readonly ObservationOutcome[] {
    // A job can write before anybody is told that it has started.
    if (isToldCut || (!hasStarted && alignment.written() === 0)) return [];
    isToldCut = true;
    return [gap(`the output of job ${job} may be cut`, { index: alignment.written() }, at)];
  }

  /**
   * Of a first replay: by then a job that prints fast may have filled windows that are gone. Whether it did can't be seen: a
   * full window is dropped as a whole, so what is left of very much may be little. How much it is at most tells the time.
   */
  function late(
    { stream, isBuffered, events }: GivenEvents,
    { ran }: Stage,
    at: Moment,
  ): readonly ObservationOutcome[] {
    if (isToldLate || !isBuffered || events.length === 0 || alignment.written() > 0 || ran === undefined) return [];
    isToldLate = true;
    const lateMs =
      Math.min(openedMs(stream, at), ran.until ? msOfMoment(ran.until) : Number.POSITIVE_INFINITY) -
      msOfMoment(ran.from);
    const printable = Math.floor((lateMs / 1_000) * fastest);
    const windows = Math.floor((printable - events.length) / windowSize);
    if (windows < 1) return [];
    const ranFor = `was first read when it had run for ${(lateMs / 1_000).toFixed(1)} s`;
    const keeps = `the server drops terminal events ${windowSize} at a time`;
    const most = `if it printed ${fastest} a second, ${windows * windowSize} are missing; if fewer than ${windowSize} in all, none`;
    return [gap(`the output of job ${job} ${ranFor}, and ${keeps}: ${most}`, { index: 0 }, at)];
  }

  function completed(bytes: Uint8Array, observedAt: Moment): ObservationOutcome {
    const original = { type: messageType, ...mask(messageType, bytes) };
    const value = { what: completeEvent, status: "", task_id: "", subtask_id: "" };
    const line = summary(`the output of job ${job} is complete`);
    const detail = { $case: "mirror", value } as const;
    return {
      ...{ what: "frame", original, observedAt },
      facts: [{ kind: "mirror.received", subject: job, summary: line, detail }],
    };
  }

  return {
    told(stream, { isFirst, isFinished }) {
      const { isLate = isFirst && isFinished } = openingOf(stream);
      opening = { stream, isLate };
    },
    *terminal(given, stage, at) {
      const { stream, before, isBuffered, events } = given;
      openingOf(stream);
      yield* late(given, stage, at);
      for (let from = 0; from === 0 || from < events.length; from += atOnce) {
        const next = masked.mask(stream, before + from, events.slice(from, from + atOnce));
        const pieces = next.map((event) => ({ ...event, at }));
        const steps = alignment.take({ stream, before: before + from, isReplay: isBuffered, pieces });
        for (const step of steps) yield seenOf(step, at);
      }
      heardAt = at;
    },
    complete({ stream, before, bytes }, stage, at) {
      const isFinal = openingOf(stream).isLate === true;
      const { steps, isShort } = alignment.complete(stream, before);
      const output = steps.map((step) => seenOf(step, at));
      heardAt = at;
      if (!isFinal) return { seen: output, isFinal };
      // A server that was started anew ends like this what ran before it, whose output it does not have.
      const isInDoubt = isShort || (before === 0 && isGivenUp(bytes));
      return { seen: [...output, ...(isInDoubt ? cut(stage, at) : []), completed(bytes, at)], isFinal };
    },
    ended(stream, code, stage, at) {
      if (opening?.stream === stream) opening = undefined;
      alignment.lose(stream);
      if (code === 0 || !stage.isFinished) return [];
      failures += 1;
      return failures >= mostAttempts || code === notFound || code === unavailable ? cut(stage, at) : [];
    },
    abandoned: cut,
    connected() {
      failures = 0;
    },
    finished(at) {
      finishedAt ??= at;
    },
    resume({ detail, original, observed_at }) {
      if (detail?.$case !== "text" || detail.value.output === undefined || original === undefined) return;
      const { index, stream, offset } = detail.value.output;
      const sha256 = Buffer.from(recordedSha(original), "hex");
      alignment.recorded({ index: Number(index), stream, offset: Number(offset) }, sha256);
      masked.recorded(stream, Number(offset), original.bytes);
      heardAt = observed_at;
    },
    memory: () => ({ ...alignment.memory(), output_final: false }),
  };
}

/** That nothing was heard of its runner any more, or that it was canceled before it had one. */
function isGivenUp(complete: Uint8Array): boolean {
  const { event } = GetJobStreamResponse.decode(complete);
  return event?.$case === "complete" && event.value.error?.code === canceled;
}

/** In the same millisecond it may be older. */
function isOpenedAfter(stream: string, moment: Moment | undefined): boolean {
  const opened = timeOf(stream);
  return moment !== undefined && opened !== undefined && opened > msOfMoment(moment);
}

/** When a stream was opened that has given something by that moment. */
function openedMs(stream: string, given: Moment): number {
  return Math.min(timeOf(stream) ?? Number.POSITIVE_INFINITY, msOfMoment(given));
}

/** The stream's id is a ULID: it tells when it was opened, in ms, by the clock that looks have. */
function timeOf(stream: string): number | undefined {
  try {
    return decodeTime(stream);
  } catch {
    return undefined;
  }
}
