import { GetJobStreamResponse_Terminal_Event } from "@tapedeck/proto/vagrant/vagrant";
import type { Event } from "@tapedeck/shared/events/codec";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { isFinished, type JobVersion, jobVersion } from "./messages.ts";

/** Subjects of everything in a source that determines how a job proceeds. */
export function jobSubjects(source: SourceName): readonly string[] {
  return [...jobEventSubjects(source), ...sessionSubjects(source)];
}

/** Subjects of the events of jobs. */
export function jobEventSubjects(source: SourceName): readonly string[] {
  return ["job.queued", "terminal.written", "mirror.received"].map((kind) => eventSubject(source, "jobs", kind));
}

/** Subjects of the beginnings and ends of sessions, with which jobs end. */
export function sessionSubjects(source: SourceName): readonly string[] {
  return ["session.ended", "upstream.restored"].map((kind) => eventSubject(source, ownChannel, kind));
}

/** One job: of all sessions, or of one. */
export type JobSelection = { readonly job: string; readonly session: string | undefined };

/** What an event of a job adds to the job's stream. */
export type JobUpdate =
  | { readonly type: "version"; readonly version: JobVersion }
  /** An encoded hashicorp.vagrant.GetJobStreamResponse.Terminal.Event, and its index in the job's output, where known. */
  | { readonly type: "output"; readonly event: Uint8Array; readonly index: number | undefined }
  /** An encoded hashicorp.vagrant.GetJobStreamResponse of an unknown kind. */
  | { readonly type: "message"; readonly bytes: Uint8Array };

export function jobUpdate({ event }: RecordedEvent, selection: JobSelection): JobUpdate | undefined {
  if (!isOfJob(event, selection)) return undefined;
  const bytes = event.original?.bytes ?? new Uint8Array();
  if (event.kind === "terminal.written") {
    return { type: "output", event: terminalEvent(event), index: outputIndex(event) };
  }
  if (event.kind.startsWith("job.")) {
    return bytes.byteLength === 0 ? undefined : { type: "version", version: jobVersion(bytes) };
  }
  return isComplete(event) || bytes.byteLength === 0 ? undefined : { type: "message", bytes };
}

/** How far a job has come, by the events up to a position. */
export type JobProgress = {
  /** The session that recorded the job last. */
  readonly session: string;
  /** The running session; empty when none runs. */
  readonly running: string;
  readonly isFinished: boolean;
  /** The server no longer knows the job, though it was not finished. */
  readonly isLost: boolean;
  /** After the job was finished, its output was read again to the end: no more can come. */
  readonly isWhole: boolean;
  /** After the job was finished, its output could not be read again. */
  readonly isCut: boolean;
  /** When the last event of the job was recorded, in milliseconds since 1970. */
  readonly lastEventAt: number;
};

export const noProgress: JobProgress = {
  session: "",
  running: "",
  isFinished: false,
  isLost: false,
  isWhole: false,
  isCut: false,
  lastEventAt: 0,
};

/** Nothing more will be recorded of the job, at least not by the server that ran it. */
export function isOver({ session, running, isLost, isWhole }: JobProgress): boolean {
  return isLost || isWhole || (session !== "" && running !== session);
}

/** The job is over, and its session can't be resumed because another one runs. */
export function isClosed(progress: JobProgress): boolean {
  return isOver(progress) && (progress.running !== "" || progress.isLost || progress.isWhole);
}

/** The progress after one more event of `jobSubjects`. Pure. */
export function progressAfter(progress: JobProgress, recorded: RecordedEvent, selection: JobSelection): JobProgress {
  const { event, recordedAt } = recorded;
  if (event.channel === ownChannel) return afterSessionEvent(progress, recorded, selection);
  const before = { ...progress, running: event.session };
  if (!isOfJob(event, selection)) return before;
  const after = { ...before, lastEventAt: recordedAt.getTime() };
  if (event.kind === "terminal.written") return { ...after, isCut: false };
  if (!event.kind.startsWith("job.")) return { ...after, isWhole: progress.isFinished && isComplete(event) };
  const isLost = event.kind === "job.lost";
  return {
    ...after,
    session: event.session,
    isLost,
    isFinished: !isLost && isFinishedAfter(event, progress.isFinished),
    isWhole: false,
    isCut: false,
  };
}

function afterSessionEvent(progress: JobProgress, { event }: RecordedEvent, { job }: JobSelection): JobProgress {
  const { kind, session, detail } = event;
  switch (kind) {
    case "session.started":
    case "upstream.restored":
      return session === "" ? progress : { ...progress, running: session };
    case "session.ended":
    case "session.lost":
      return session === progress.running ? { ...progress, running: "" } : progress;
    case "session.gap": {
      const output = detail?.$case === "gap" ? detail.value.output : undefined;
      const isCut = progress.isFinished && output?.job === job && output.next_index === undefined;
      return isCut ? { ...progress, isCut } : progress;
    }
    default:
      return progress;
  }
}

function isOfJob({ channel, subject, session }: Event, selection: JobSelection): boolean {
  return channel === "jobs" && subject === selection.job && (selection.session ?? session) === session;
}

const finishingKinds = new Set(["job.succeeded", "job.failed", "job.canceled"]);

/**
 * One observation can produce several facts. Only the first of them carries the job itself, and none does when the job is
 * too large for the log.
 */
function isFinishedAfter({ kind, original }: Event, before: boolean): boolean {
  const bytes = original?.bytes ?? new Uint8Array();
  return finishingKinds.has(kind) || (bytes.byteLength > 0 ? isFinished(jobVersion(bytes).state) : before);
}

/** Ingest records the server's `complete` only for a reading of the whole output of a job that was already finished. */
function isComplete({ detail }: Event): boolean {
  return detail?.$case === "mirror" && detail.value.what === "complete";
}

/** The terminal event as it arrived. One that is too large for the log is made of the part of its text that was kept. */
function terminalEvent({ original, detail }: Event): Uint8Array {
  const { bytes = new Uint8Array(), size = 0n } = original ?? {};
  if (original !== undefined && BigInt(bytes.byteLength) === size) return bytes;
  // The line end is not part of the line.
  const msg = detail?.$case === "text" ? detail.value.text.replace(/\n$/, "") : "";
  const event = GetJobStreamResponse_Terminal_Event.fromPartial({ event: { $case: "line", value: { msg } } });
  return GetJobStreamResponse_Terminal_Event.encode(event).finish();
}

/** The index of a terminal event in its job's output, where it is known. */
export function outputIndex({ detail }: Event): number | undefined {
  const output = detail?.$case === "text" ? detail.value.output : undefined;
  return output && Number(output.index);
}
