import { GetJobStreamResponse_Terminal_Event } from "@tapedeck/proto/vagrant/vagrant";
import type { Event } from "@tapedeck/shared/events/codec";
import type { Recorded } from "@tapedeck/shared/log/log";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { isFinished, type JobVersion, jobVersion } from "./job-stream-messages.ts";

/** What there is to read of a source to follow a job. */
export function jobSubjects(source: SourceName): readonly string[] {
  return [...toldSubjects(source), ...sessionSubjects(source)];
}

/** What tells of jobs. */
export function toldSubjects(source: SourceName): readonly string[] {
  return ["job.queued", "terminal.written", "mirror.received"].map((kind) => eventSubject(source, "jobs", kind));
}

/** What tells of the sessions that jobs end with. */
export function sessionSubjects(source: SourceName): readonly string[] {
  return ["session.ended", "upstream.restored"].map((kind) => eventSubject(source, "tapedeck", kind));
}

/** One job: of all sessions, or of one. */
export type WhichJob = { readonly job: string; readonly session: string | undefined };

/** What an event of the job says on its stream. */
export type Told =
  | { readonly what: "version"; readonly version: JobVersion }
  /** An encoded hashicorp.vagrant.GetJobStreamResponse.Terminal.Event, and its place in the job's output, where it says it. */
  | { readonly what: "output"; readonly event: Uint8Array; readonly index: number | undefined }
  /** An encoded hashicorp.vagrant.GetJobStreamResponse of a kind that is not known here. */
  | { readonly what: "message"; readonly bytes: Uint8Array };

export function toldBy({ event }: Recorded, which: WhichJob): Told | undefined {
  if (!isOfJob(event, which)) return undefined;
  const bytes = event.original?.bytes ?? new Uint8Array();
  if (event.kind === "terminal.written") return { what: "output", event: outputOf(event), index: indexOf(event) };
  if (event.kind.startsWith("job.")) {
    return bytes.byteLength === 0 ? undefined : { what: "version", version: jobVersion(bytes) };
  }
  return isComplete(event) || bytes.byteLength === 0 ? undefined : { what: "message", bytes };
}

/** How it stands with a job by what was recorded up to a moment. */
export type Course = {
  /** The session that has told of the job last. */
  readonly session: string;
  /** The session that runs; empty: none does. */
  readonly running: string;
  readonly isFinished: boolean;
  /** The server does not know it any more, though it was not finished. */
  readonly isLost: boolean;
  /** After the job was finished its output was read again to its end: nothing more comes. */
  readonly isWhole: boolean;
  /** After the job was finished its output could not be read again. */
  readonly isCut: boolean;
  /** When the last event of the job was recorded, in milliseconds since 1970. */
  readonly spokeAt: number;
};

export const unbegun: Course = {
  session: "",
  running: "",
  isFinished: false,
  isLost: false,
  isWhole: false,
  isCut: false,
  spokeAt: 0,
};

/** Nothing more will be recorded of the job, at least not by the server that ran it. */
export function isOver({ session, running, isLost, isWhole }: Course): boolean {
  return isLost || isWhole || (session !== "" && running !== session);
}

/** As isOver, and a session that has ended is not gone on with: another one runs. */
export function isClosed(course: Course): boolean {
  return isOver(course) && (course.running !== "" || course.isLost || course.isWhole);
}

/** One event more, of those that jobSubjects names. Pure. */
export function courseAfter(course: Course, recorded: Recorded, which: WhichJob): Course {
  const { event, recordedAt } = recorded;
  if (event.channel === "tapedeck") return afterSession(course, recorded, which);
  const before = { ...course, running: event.session };
  if (!isOfJob(event, which)) return before;
  const after = { ...before, spokeAt: recordedAt.getTime() };
  if (event.kind === "terminal.written") return { ...after, isCut: false };
  if (!event.kind.startsWith("job.")) return { ...after, isWhole: course.isFinished && isComplete(event) };
  const isLost = event.kind === "job.lost";
  return {
    ...after,
    session: event.session,
    isLost,
    isFinished: !isLost && endsWith(event, course.isFinished),
    isWhole: false,
    isCut: false,
  };
}

function afterSession(course: Course, { event }: Recorded, { job }: WhichJob): Course {
  const { kind, session, detail } = event;
  switch (kind) {
    case "session.started":
    case "upstream.restored":
      return session === "" ? course : { ...course, running: session };
    case "session.ended":
    case "session.lost":
      return session === course.running ? { ...course, running: "" } : course;
    case "session.gap": {
      const output = detail?.$case === "gap" ? detail.value.output : undefined;
      const isCut = course.isFinished && output?.job === job && output.next_index === undefined;
      return isCut ? { ...course, isCut } : course;
    }
    default:
      return course;
  }
}

function isOfJob({ channel, subject, session }: Event, which: WhichJob): boolean {
  return channel === "jobs" && subject === which.job && (which.session ?? session) === session;
}

const ends = new Set(["job.succeeded", "job.failed", "job.canceled"]);

/** A look can tell several facts, and only the first has the job itself, or none where it is too large for the log. */
function endsWith({ kind, original }: Event, before: boolean): boolean {
  const bytes = original?.bytes ?? new Uint8Array();
  return ends.has(kind) || (bytes.byteLength > 0 ? isFinished(jobVersion(bytes).state) : before);
}

/** Record keeps the server's `complete` to a reading of the whole output of a job that was finished before. */
function isComplete({ detail }: Event): boolean {
  return detail?.$case === "mirror" && detail.value.what === "complete";
}

/** The event as it came; of one that is too large for the log what was kept of its text. */
function outputOf({ original, detail }: Event): Uint8Array {
  const { bytes = new Uint8Array(), size = 0n } = original ?? {};
  if (original !== undefined && BigInt(bytes.byteLength) === size) return bytes;
  // A line's end is not part of it.
  const msg = detail?.$case === "text" ? detail.value.text.replace(/\n$/, "") : "";
  const event = GetJobStreamResponse_Terminal_Event.fromPartial({ event: { $case: "line", value: { msg } } });
  return GetJobStreamResponse_Terminal_Event.encode(event).finish();
}

/** Of a terminal event: its place in its job's output, where it says it. */
export function indexOf({ detail }: Event): number | undefined {
  const output = detail?.$case === "text" ? detail.value.output : undefined;
  return output && Number(output.index);
}
