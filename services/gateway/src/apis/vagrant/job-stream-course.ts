import { GetJobStreamResponse_Terminal_Event } from "@tapedeck/proto/vagrant/vagrant";
import type { Event } from "@tapedeck/shared/events/codec";
import type { Recorded } from "@tapedeck/shared/log/log";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { isFinished, type JobVersion, jobVersion } from "./job-stream-messages.ts";

/** What there is to read of a source to follow a job: of its channels, and of its sessions. */
export function jobSubjects(source: SourceName): readonly string[] {
  return [
    eventSubject(source, "jobs", "job.queued"),
    eventSubject(source, "jobs", "terminal.written"),
    eventSubject(source, "jobs", "mirror.received"),
    eventSubject(source, "tapedeck", "session.ended"),
    eventSubject(source, "tapedeck", "upstream.restored"),
  ];
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
  /** When something of the job was seen last, or its session was found again: by the recorder's clock. */
  readonly seenAt: number;
};

export const unbegun: Course = {
  session: "",
  running: "",
  isFinished: false,
  isLost: false,
  isWhole: false,
  isCut: false,
  spokeAt: 0,
  seenAt: 0,
};

/** Nothing more will be recorded of the job, at least not by the server that ran it. */
export function isOver({ session, running, isLost, isWhole }: Course): boolean {
  return isLost || isWhole || (session !== "" && running !== session);
}

/** As isOver, and a session that has ended is not gone on with: another one runs. */
export function isClosed(course: Course): boolean {
  return isOver(course) && (course.running !== "" || course.isLost || course.isWhole);
}

/** In the record a job that is finished says no more after so long a silence. */
const longestSilenceMs = 600_000;

/**
 * That by its last event nothing of the job had been seen for long. When it was recorded does not count: what waited
 * for the log comes late.
 */
export function isSilent({ isFinished, session, seenAt }: Course, last: Recorded): boolean {
  return isFinished && session !== "" && seenTime(last) - seenAt > longestSilenceMs;
}

/** One event more, of those that jobSubjects names. Pure. */
export function courseAfter(course: Course, recorded: Recorded, which: WhichJob): Course {
  const { event, recordedAt } = recorded;
  if (event.channel === "tapedeck") return afterSession(course, recorded, which);
  const before = { ...course, running: event.session };
  if (!isOfJob(event, which)) return before;
  const after = { ...before, spokeAt: recordedAt.getTime(), seenAt: seenTime(recorded) };
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

function afterSession(course: Course, recorded: Recorded, { job }: WhichJob): Course {
  const { kind, session, detail } = recorded.event;
  switch (kind) {
    case "session.started":
    case "upstream.restored":
      return session === "" ? course : { ...course, running: session, seenAt: seenTime(recorded) };
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

/** In milliseconds since 1970. */
function seenTime({ event: { observed_at }, recordedAt }: Recorded): number {
  if (observed_at === undefined) return recordedAt.getTime();
  return Number(observed_at.seconds) * 1_000 + observed_at.nanos / 1e6;
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
