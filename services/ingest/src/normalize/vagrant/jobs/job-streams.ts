import type { Observation_StreamEnded, Observation_Streamed } from "@tapedeck/proto/tapedeck/v1/observation";
import { assertNever } from "@tapedeck/shared/assert-never";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../fact.ts";
import { summary } from "../../facts.ts";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import { messageType, type ReceivedEnd } from "./job-output.ts";
import { isUsableId, type JobReports, stageOf } from "./job-reports.ts";
import { type StreamMessage, streamMessageIn } from "./job-wire.ts";
import type { JobsMemory } from "./jobs-memory.ts";

/** Streams of single jobs: their states, and their output until it is final. */
export class JobStreams {
  readonly #memory: JobsMemory;
  readonly #reports: JobReports;

  constructor(memory: JobsMemory, reports: JobReports) {
    this.#memory = memory;
    this.#reports = reports;
  }

  *message(
    { job: id, bytes, stream, before }: Observation_Streamed,
    at: Timestamp,
  ): Generator<ObservationOutcome, void> {
    const known = this.#memory.byId.get(id);
    if (!isUsableId(id) || (known !== undefined && known.output === undefined)) return;
    try {
      yield* this.#outcomesOf(id, streamMessageIn(bytes), { stream, before: Number(before), bytes }, at);
    } catch (cause) {
      yield* this.#reports.unreadable(messageType, bytes, cause, at);
    }
  }

  ended({ job: id, stream, code }: Observation_StreamEnded, at: Timestamp): readonly ObservationOutcome[] {
    const job = this.#memory.byId.get(id);
    return job?.output?.ended(stream, code, stageOf(job), at) ?? [];
  }

  #outcomesOf(id: string, message: StreamMessage, end: ReceivedEnd, at: Timestamp): Iterable<ObservationOutcome> {
    switch (message.what) {
      case "open":
        return [];
      case "state": {
        const outcomes = message.job === undefined ? [] : this.#reports.answered({ id, bytes: message.job }, at);
        // The stream's own word: other answers may have shown already that the job is over, and its output is cut then.
        this.#memory.get(id).output?.stateReported(end.stream, message);
        return outcomes;
      }
      case "terminal": {
        const job = this.#memory.get(id);
        return job.output?.terminal({ ...end, ...message }, stageOf(job), at) ?? [];
      }
      case "complete": {
        const job = this.#memory.get(id);
        const { outcomes = [], isFinal = false } = job.output?.complete(end, stageOf(job), at) ?? {};
        if (isFinal) job.output = undefined;
        return outcomes;
      }
      case "error":
      case "unknown":
        return this.#reports.unknownMessage(unknownFact(id, message.what), end.bytes, at);
      default:
        return assertNever(message);
    }
  }
}

function unknownFact(job: string, what: string): Fact {
  return {
    kind: "mirror.received",
    subject: job,
    summary: summary(`the stream of job ${job} sent an unknown message`),
    detail: { $case: "mirror", value: { what, status: "", task_id: "", subtask_id: "" } },
  };
}
