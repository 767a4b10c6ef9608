import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import {
  FindBasisResponse,
  FindProjectResponse,
  GetBoxResponse,
  GetJobStreamRequest,
  GetJobStreamResponse,
  type Job_Result,
  Job_State,
  QueueJobRequest,
  QueueJobResponse,
  type Runner,
  RunnerConfigRequest,
  type GetJobStreamResponse_Terminal_Event as TerminalEvent,
  UpsertBasisResponse,
  UpsertBoxResponse,
  UpsertProjectResponse,
  UpsertTargetResponse,
} from "@tapedeck/proto/vagrant/vagrant";
import type { RecordedRow, RecordedUpstream } from "./recording.ts";
import { goDuration, type Lent, plus } from "./state/stamps.ts";

/** Something that a recording's client or runner did. */
export type RecordedStep = StepPlace & StepContent;

export type StepPlace = {
  /** The number of the row that shows it. */
  readonly n: number;
  /** Ms since the recording began. */
  readonly atMs: number;
};

export type StepContent =
  | { readonly kind: "runner"; readonly runner: Runner }
  | CallStep
  | { readonly kind: "assign" | "ack"; readonly job: string; readonly at: Timestamp }
  | { readonly kind: "write"; readonly job: string; readonly events: readonly TerminalEvent[] }
  | {
      readonly kind: "complete";
      readonly job: string;
      readonly at: Timestamp;
      readonly result?: Job_Result | undefined;
    };

export type CallStep = {
  readonly kind: "call";
  readonly rpc: string;
  readonly request: Buffer;
  /** The record or job that it made or changed; of a Find that found none: the one that was made therefore. */
  readonly about?: string;
  /** The recorded call was refused. */
  readonly isRefused: boolean;
  /** Ids and times that the recorded call was given. */
  readonly lent: Lent;
};

/**
 * The steps of a recording by rising `n`. The runner's own messages are not recorded, so they are read from the first
 * stream of that job.
 */
export function stepsOf({ rows }: RecordedUpstream): RecordedStep[] {
  const firstStreams = new Map<string, string>();
  for (const row of rows) {
    if (row.kind !== "stream-open" || row.rpc !== "GetJobStream") continue;
    const { job_id } = GetJobStreamRequest.decode(row.request);
    if (![...firstStreams.values()].includes(job_id)) firstStreams.set(row.stream, job_id);
  }
  const made = new Set<string>();
  return rows.flatMap((row) => {
    const base = { n: row.n, atMs: row.atMs };
    if (row.kind === "stream-send" && row.rpc === "RunnerConfig") {
      const runner = RunnerConfigRequest.decode(row.message).event?.value.runner;
      return runner === undefined ? [] : [{ ...base, kind: "runner", runner }];
    }
    if (row.kind === "stream-message" && row.rpc === "GetJobStream") {
      const job = firstStreams.get(row.stream);
      const step = job === undefined ? undefined : jobStep(GetJobStreamResponse.decode(row.message), job);
      return step === undefined ? [] : [{ ...base, ...step }];
    }
    if (row.kind !== "unary" || row.actor === "recorder" || row.rpc === "GetVersionInfo") return [];
    const about = row.response === undefined ? madeAfter(rows, row) : subjectOf(row.rpc, row.response, rows);
    const isNew = about !== undefined && row.response !== undefined && !made.has(about);
    if (isNew) made.add(about);
    const lent = { ids: isNew ? [about] : [], times: timesOf(row, rows) };
    const isRefused = row.error !== undefined;
    return [{ ...base, kind: "call", rpc: row.rpc, request: row.request, isRefused, lent, ...(about && { about }) }];
  });
}

function jobStep({ event }: GetJobStreamResponse, job: string): StepContent | undefined {
  if (event?.$case === "terminal") return { kind: "write", job, events: event.value.events };
  if (event?.$case !== "state" || event.value.job === undefined) return undefined;
  const { assign_time, ack_time, complete_time, result } = event.value.job;
  switch (event.value.current) {
    case Job_State.WAITING:
      return assign_time && { kind: "assign", job, at: assign_time };
    case Job_State.RUNNING:
      return ack_time && { kind: "ack", job, at: ack_time };
    case Job_State.SUCCESS:
      return complete_time && { kind: "complete", job, at: complete_time, result };
    default:
      return undefined;
  }
}

/** The resource_id or job id in an answer, or, as a box's is not in it, in what was read later. */
export function subjectOf(rpc: string, response: Buffer, rows: readonly RecordedRow[] = []): string | undefined {
  switch (rpc) {
    case "QueueJob":
      return QueueJobResponse.decode(response).job_id;
    case "UpsertBasis":
    case "FindBasis":
      return (rpc === "UpsertBasis" ? UpsertBasisResponse : FindBasisResponse).decode(response).basis?.resource_id;
    case "UpsertProject":
    case "FindProject":
      return (rpc === "UpsertProject" ? UpsertProjectResponse : FindProjectResponse).decode(response).project
        ?.resource_id;
    case "UpsertTarget":
      return UpsertTargetResponse.decode(response).target?.resource_id;
    case "UpsertBox": {
      const { name } = UpsertBoxResponse.decode(response).box ?? {};
      const boxes = rows.flatMap((row) =>
        row.kind === "unary" && row.rpc === "GetBox" && row.response ? [GetBoxResponse.decode(row.response).box] : [],
      );
      return boxes.find((box) => box?.name === name)?.resource_id;
    }
    default:
      return undefined;
  }
}

/** The record that was created because this Find did not find it. */
function madeAfter(rows: readonly RecordedRow[], { n, rpc }: RecordedRow): string | undefined {
  const upsert = rpc.replace("Find", "Upsert");
  const row = rows.find((each) => each.n > n && each.rpc === upsert);
  return row?.kind === "unary" && row.response !== undefined ? subjectOf(upsert, row.response, rows) : undefined;
}

/** In the order in which the server reads its clock. */
function timesOf(row: RecordedRow, rows: readonly RecordedRow[]): Timestamp[] {
  if (row.kind !== "unary" || row.response === undefined) return [];
  if (row.rpc === "UpsertBox") return [UpsertBoxResponse.decode(row.response).box?.last_update ?? []].flat();
  if (row.rpc !== "QueueJob") return [];
  const id = QueueJobResponse.decode(row.response).job_id;
  const jobs = rows.flatMap((each) => {
    const event =
      each.kind === "stream-message" && each.rpc === "GetJobStream"
        ? GetJobStreamResponse.decode(each.message).event
        : undefined;
    return event?.$case === "state" && event.value.job?.id === id ? [event.value.job] : [];
  });
  const { queue_time, expire_time } = jobs[0] ?? {};
  const expiresIn = goDuration(QueueJobRequest.decode(row.request).expires_in);
  const requests = expire_time && expiresIn !== undefined ? [plus(expire_time, -expiresIn)] : [];
  return queue_time === undefined ? [] : [...requests, queue_time];
}
