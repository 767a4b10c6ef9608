import type { Event, KnownJobs_Job } from "@tapedeck/proto/tapedeck/v1/event";
import { decodeTime } from "ulid";
import { msOfMoment } from "../../record/moment.ts";
import { recordedSha } from "../../record/original.ts";
import { summary } from "../facts.ts";
import type { Seen, WatchOptions } from "../looking.ts";
import type { Moment } from "../upstream.ts";
import { type OutputAlignment, outputAlignment, type Step } from "./output-alignment.ts";
import { writtenFact } from "./terminal-text.ts";

/** What the alignment needs to know of the job itself. */
export type Stage = {
  /** Without that there is no output. */
  readonly hasStarted: boolean;
  readonly isFinished: boolean;
};

/**
 * One job's output. Live output is cut when a job completes, so it is final only when a stream that was opened after
 * that has given all that there is: its `complete` is recorded (mirror.received), and from then on nothing more is heard.
 */
export type JobOutput = {
  readonly isFinal: () => boolean;
  /** A state that the stream has told. */
  readonly told: (stream: string, isFinished: boolean) => void;
  readonly terminal: (given: GivenEvents, at: Moment) => readonly Seen[];
  readonly complete: (given: GivenEnd, at: Moment) => readonly Seen[];
  /** `code`: gRPC's; `isFinished`: the job, as far as is known. */
  readonly ended: (stream: string, code: number, stage: Stage, at: Moment) => readonly Seen[];
  /** Its server is gone, or knows it no more. */
  readonly abandoned: (stage: Stage, at: Moment) => readonly Seen[];
  readonly connected: () => void;
  /** When the job was seen to be finished. */
  readonly finished: (at: Moment) => void;
  readonly resume: (event: Event) => void;
  readonly memory: () => OutputMemory;
};

export type GivenEvents = {
  readonly stream: string;
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

export type OutputMemory = Omit<KnownJobs_Job, "job" | "state" | "told" | "$unknown">;

const eventType = "hashicorp.vagrant.GetJobStreamResponse.Terminal.Event";
export const messageType = "hashicorp.vagrant.GetJobStreamResponse";
/** `MirrorDetail.what` of the `complete` after which nothing comes. */
export const completeEvent = "complete";
/** The tap opens the stream of a job that is over once more, and once more if that failed. */
const mostAttempts = 2;
/** The server does not know the job; the connection is gone, and most often the server with it. */
const [notFound, unavailable] = [5, 14];

export function jobOutput(job: string, mask: WatchOptions["mask"], from?: OutputMemory): JobOutput {
  /** Undefined: it is final. */
  let alignment: OutputAlignment | undefined = from?.output_final ? undefined : outputAlignment(from);
  const written = from?.written ?? 0n;
  /** The stream that is open, and whether the job was over when it was opened; undefined: nobody knows. */
  let opening: { readonly stream: string; readonly isLate?: boolean } | undefined;
  let finishedAt: Moment | undefined;
  let failures = 0;
  let isToldCut = false;
  let heardAt: Moment | undefined;

  function openingOf(stream: string): { readonly stream: string; readonly isLate?: boolean } {
    if (opening?.stream !== stream) opening = { stream, ...(isOpenedAfter(stream, finishedAt) && { isLate: true }) };
    return opening;
  }

  function seenOf(step: Step, at: Moment): Seen {
    if ("missing" in step) {
      const { from: index, next } = step.missing;
      return gap(`${next - index} terminal events of job ${job} are missing`, index, next, at);
    }
    const { piece, ...place } = step.placed;
    const { bytes, redacted, at: observedAt } = piece;
    const original = { type: eventType, bytes, redacted };
    return { what: "frame", original, facts: [writtenFact(job, bytes, place)], observedAt };
  }

  function gap(reason: string, index: number, next: number | undefined, until: Moment): Seen {
    const output = { job, index: BigInt(index), ...(next !== undefined && { next_index: BigInt(next) }) };
    return { what: "gap", reason, after: heardAt, until, output };
  }

  function cut(at: Moment): readonly Seen[] {
    if (alignment === undefined || isToldCut) return [];
    isToldCut = true;
    return [gap(`the output of job ${job} may be cut`, alignment.written(), undefined, at)];
  }

  return {
    isFinal: () => alignment === undefined,
    told(stream, isFinished) {
      const { isLate = isFinished } = openingOf(stream);
      opening = { stream, isLate };
    },
    terminal({ stream, before, isBuffered, events }, at) {
      if (alignment === undefined) return [];
      openingOf(stream);
      const pieces = events.map((event) => ({ ...mask(eventType, event), at }));
      const steps = alignment.take({ stream, before, isReplay: isBuffered, pieces });
      const seen = steps.map((step) => seenOf(step, at));
      heardAt = at;
      return seen;
    },
    complete({ stream, before, bytes }, at) {
      if (alignment === undefined) return [];
      const { isLate } = openingOf(stream);
      const { steps, isShort } = alignment.complete(stream, before);
      const seen = steps.map((step) => seenOf(step, at));
      if (isLate !== true) return seen;
      if (isShort) seen.push(...cut(at));
      alignment = undefined;
      const value = { what: completeEvent, status: "", task_id: "", subtask_id: "" };
      const line = summary(`the output of job ${job} is complete`);
      const facts = [
        { kind: "mirror.received", subject: job, summary: line, detail: { $case: "mirror", value } },
      ] as const;
      seen.push({ what: "frame", original: { type: messageType, ...mask(messageType, bytes) }, facts, observedAt: at });
      return seen;
    },
    ended(stream, code, { isFinished, hasStarted }, at) {
      if (opening?.stream === stream) opening = undefined;
      alignment?.lose(stream);
      if (code === 0 || !isFinished) return [];
      failures += 1;
      const isHopeless = failures >= mostAttempts || code === notFound || code === unavailable;
      return isHopeless && hasStarted ? cut(at) : [];
    },
    abandoned: ({ hasStarted }, at) => (hasStarted ? cut(at) : []),
    connected() {
      failures = 0;
    },
    finished(at) {
      finishedAt ??= at;
    },
    resume({ kind, detail, original, observed_at }) {
      if (kind === "mirror.received" && detail?.$case === "mirror" && detail.value.what === completeEvent) {
        alignment = undefined;
      }
      if (detail?.$case !== "text" || detail.value.output === undefined || original === undefined) return;
      const { index, stream, offset } = detail.value.output;
      const sha256 = Buffer.from(recordedSha(original), "hex");
      alignment?.recorded({ index: Number(index), stream, offset: Number(offset) }, sha256);
      heardAt = observed_at;
    },
    memory() {
      const empty = { written, digests: Buffer.alloc(0), digests_from: written, stream: "", offset: 0n };
      return { ...(alignment?.memory() ?? empty), output_final: alignment === undefined };
    },
  };
}

/** The stream's id is a ULID: it tells when it was opened, by the same clock. */
function isOpenedAfter(stream: string, moment: Moment | undefined): boolean {
  if (moment === undefined) return false;
  try {
    return decodeTime(stream) > msOfMoment(moment);
  } catch {
    return false;
  }
}
