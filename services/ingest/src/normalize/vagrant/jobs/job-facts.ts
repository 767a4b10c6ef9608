import { type Event, type JobDetail, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { type Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps, timestampOfMs, validTimestamp } from "@tapedeck/shared/time/timestamp";
import { decodeTime } from "ulid";
import type { Fact } from "../../fact.ts";
import { canceled, failed, failure, name, summary } from "../../facts.ts";
import { commandDetail, commandEnding, type Ending, errorOf, jobDetail } from "./job-detail.ts";

/** The recorded facts of a job. */
export type ReportedFacts = {
  /** hashicorp.vagrant.Job.State, as recorded last. */
  readonly state: number;
  /** The number of facts, by kind. And "stale": a fact reported so. */
  readonly times: Readonly<Record<string, number>>;
};

export const nothingReported: ReportedFacts = { state: Job_State.UNKNOWN, times: {} };

export function isFinished({ state }: Pick<ReportedFacts, "state">): boolean {
  return state === Job_State.SUCCESS || state === Job_State.ERROR;
}

/** Nothing of the job is left to record. A recorder may have stopped between the end of a job and that of its command. */
export function isOver(reported: ReportedFacts): boolean {
  const isEnded = isFinished(reported) || wasReported(reported, "job.lost");
  return isEnded && (!wasReported(reported, "command.started") || wasReported(reported, "command.finished"));
}

export function wasReported({ times }: ReportedFacts, kind: Fact["kind"] | "stale"): boolean {
  return (times[kind] ?? 0) > 0;
}

/** Adds a fact that is recorded now, or is read back from the log. */
export function reportedAfter(
  { state, times }: ReportedFacts,
  { kind, detail }: Pick<Fact, "kind" | "detail">,
): ReportedFacts {
  const more = { ...times, [kind]: (times[kind] ?? 0) + 1 };
  const isStale = detail?.$case === "job" && detail.value.stale;
  // The facts count, and not the job's own state: the log may have only some of the facts of one answer.
  return { state: stateAfter[kind] ?? state, times: isStale ? { ...more, stale: 1 } : more };
}

const stateAfter: Partial<Record<Fact["kind"], number>> = {
  "job.queued": Job_State.QUEUED,
  "job.assigned": Job_State.WAITING,
  "job.requeued": Job_State.QUEUED,
  "job.started": Job_State.RUNNING,
  "job.succeeded": Job_State.SUCCESS,
  "job.failed": Job_State.ERROR,
  "job.canceled": Job_State.ERROR,
};

/**
 * The facts of an answer about a job that are not recorded yet, in the order in which they happened; none if the answer is
 * older than what is recorded (a list and a stream answer independently). The job's times also show the stages that no
 * answer did, except a second assignment and what follows it.
 */
export function jobFacts(job: Job, id: string, reported: ReportedFacts, { stale = false } = {}): readonly Fact[] {
  if (progress(job.state) < progress(reported.state)) return [];
  const about: JobContext = {
    job,
    reported,
    detail: { ...jobDetail(job, id), stale: stale || wasReported(reported, "stale") },
  };
  if (isFinished(reported)) return end(about).filter(({ kind }) => kind === "command.finished");
  const start = startFacts(about);
  const cancel = cancelFacts(about);
  return [
    ...queueFacts(about),
    ...(isCanceledFirst(job) ? [...cancel, ...start] : [...start, ...cancel]),
    ...end(about),
  ];
}

/** The server does not know the job any more, though it was not finished. `answered`: the job as answered last. */
export function lostFacts(answered: JobDetail, reported: ReportedFacts): readonly Fact[] {
  const detail = { ...answered, stale: wasReported(reported, "stale") };
  const unknown = { outcome: Outcome.OUTCOME_UNKNOWN };
  const lost = jobFact("job.lost", detail, "was lost: the server no longer lists it", unknown);
  return [
    ...(wasReported(reported, "job.lost") ? [] : [lost]),
    ...commandEnd(detail, reported, unknown, { inferred: true }),
  ];
}

type JobContext = { readonly job: Job; readonly reported: ReportedFacts; readonly detail: JobDetail };

/** A job can go back from WAITING to QUEUED, and no further. */
function progress(state: number): number {
  if (isFinished({ state })) return 2;
  return state === Job_State.RUNNING ? 1 : 0;
}

function queueFacts({ job, reported, detail }: JobContext): readonly Fact[] {
  const { queue_time, assign_time, ack_time, expire_time, state } = job;
  const facts: Fact[] = [];
  if (!wasReported(reported, "job.queued")) {
    const expires = validTimestamp(expire_time);
    const queued = { ...detail, ...(expires && { expire_time: expires }) };
    const occurredAt = validTimestamp(queue_time) ?? timeOfId(detail.job);
    facts.push(jobFact("job.queued", queued, "was queued", { ...(occurredAt && { occurredAt }) }));
  }
  let assigned = reported.times["job.assigned"] ?? 0;
  const requeued = reported.times["job.requeued"] ?? 0;
  const isStarting = (ack_time !== undefined || state === Job_State.RUNNING) && !wasReported(reported, "job.started");
  // assign_time stays that of the first assignment. Only the state shows later ones.
  const isAssigned =
    state === Job_State.WAITING || (assigned === 0 ? assign_time !== undefined : isStarting && assigned === requeued);
  if (isAssigned && assigned === requeued) {
    const attempt = assigned + 1;
    const again = attempt > 1 ? " again" : "";
    const time = attempt === 1 ? timed(assign_time) : {};
    facts.push(jobFact("job.assigned", { ...detail, attempt }, `was given to a runner${again}`, time));
    assigned = attempt;
  }
  // An answer that is older than the assignment has no assign_time.
  if (state === Job_State.QUEUED && assign_time !== undefined && assigned > requeued) {
    facts.push(jobFact("job.requeued", { ...detail, attempt: requeued + 1 }, "was not taken by its runner"));
  }
  return facts;
}

function startFacts({ job, reported, detail }: JobContext): readonly Fact[] {
  if (job.ack_time === undefined && job.state !== Job_State.RUNNING) return [];
  const time = timed(job.ack_time);
  const isCommandReported = detail.operation !== "command" || wasReported(reported, "command.started");
  return [
    ...(wasReported(reported, "job.started") ? [] : [jobFact("job.started", detail, "started", time)]),
    ...(isCommandReported ? [] : [commandFact("command.started", detail, "started", time)]),
  ];
}

function cancelFacts({ job, reported, detail }: JobContext): readonly Fact[] {
  if (job.cancel_time === undefined || wasReported(reported, "job.cancel_requested")) return [];
  // The server also cancels a job that expired, or whose runner was lost, without a request.
  if (isCanceled(job) && cancelReason(job, reported) !== "requested") return [];
  return [jobFact("job.cancel_requested", detail, "is to be canceled", timed(job.cancel_time))];
}

/** A job can expire while it waits for its runner, which takes it nevertheless. */
function isCanceledFirst({ cancel_time, ack_time }: Job): boolean {
  return cancel_time !== undefined && ack_time !== undefined && compareTimestamps(cancel_time, ack_time) < 0;
}

function end({ job, reported, detail }: JobContext): readonly Fact[] {
  if (job.state === Job_State.SUCCESS) {
    const ending = commandEnding(job);
    const time = timed(job.complete_time);
    const fact = jobFact("job.succeeded", detail, successOf(detail, ending), { ...time, ...ending });
    return [fact, ...commandEnd(detail, reported, ending, { job, ...time })];
  }
  if (job.state !== Job_State.ERROR) return [];
  if (isCanceled(job)) {
    const reason = cancelReason(job, reported);
    const time = timed(job.cancel_time);
    const fact = jobFact("job.canceled", { ...detail, reason }, cancelWords[reason], { ...time, ...canceled });
    return [fact, ...commandEnd(detail, reported, canceled, { job, ...time, inferred: true })];
  }
  const ending = failed(job.error && errorOf(job.error));
  const time = timed(job.complete_time);
  const line = failure(jobName(detail), ending.error);
  const fact = { ...jobFact("job.failed", detail, "", { ...time, ...ending }), summary: line };
  return [fact, ...commandEnd(detail, reported, ending, { job, ...time, inferred: true })];
}

function successOf({ command }: JobDetail, { outcome }: Ending): string {
  if (outcome === Outcome.OUTCOME_SUCCEEDED) return "succeeded";
  if (outcome === Outcome.OUTCOME_CANCELED) return `is over: ${command} was canceled`;
  return outcome === Outcome.OUTCOME_FAILED ? `is over: ${command} failed` : "is over, without a result";
}

/** Code 1 without a complete_time: no runner has reported the end. */
function isCanceled({ state, error, cancel_time, complete_time }: Job): boolean {
  return state === Job_State.ERROR && error?.code === 1 && cancel_time !== undefined && complete_time === undefined;
}

type CancelReason = "requested" | "expired" | "heartbeat";

const cancelWords: Readonly<Record<CancelReason, string>> = {
  requested: "was canceled",
  expired: "was canceled: no runner took it in time",
  heartbeat: "was canceled: its runner did not respond for two minutes",
};

function cancelReason({ cancel_time, expire_time, ack_time }: Job, reported: ReportedFacts): CancelReason {
  if (ack_time !== undefined) return wasReported(reported, "job.cancel_requested") ? "requested" : "heartbeat";
  const isLate = cancel_time && expire_time && compareTimestamps(cancel_time, expire_time) >= 0;
  return isLate ? "expired" : "requested";
}

type CommandEnd = Pick<Fact, "occurredAt" | "inferred"> & { readonly job?: Job };

/** `inferred`: no answer describes the command itself, but it can't continue without its job. */
function commandEnd(
  detail: JobDetail,
  reported: ReportedFacts,
  ending: Ending,
  { job, ...more }: CommandEnd,
): readonly Fact[] {
  const hasStarted = wasReported(reported, "command.started") || job?.ack_time !== undefined;
  if (!hasStarted || detail.operation !== "command" || wasReported(reported, "command.finished")) return [];
  const run = job?.result?.run;
  const isInferred = more.inferred === true || run === undefined;
  const value = {
    succeeded: ending.outcome === Outcome.OUTCOME_SUCCEEDED,
    exit_code: run?.exit_code ?? 0,
    canceled: wasReported(reported, "job.cancel_requested") || (job?.cancel_time !== undefined && !isCanceled(job)),
  };
  const how = { ...more, ...ending, ...(isInferred && { inferred: true }) };
  const fact = commandFact("command.finished", detail, commandWords(ending), how, value);
  return [isFailed(ending) ? { ...fact, summary: failure(detail.command, ending.error) } : fact];
}

function commandWords({ outcome }: Ending): string {
  if (outcome === Outcome.OUTCOME_SUCCEEDED) return "succeeded";
  return outcome === Outcome.OUTCOME_CANCELED ? "was canceled" : "is over, with an unknown outcome";
}

function isFailed({ outcome }: Ending): boolean {
  return outcome === Outcome.OUTCOME_FAILED;
}

type More = Partial<Pick<Fact, "occurredAt" | "outcome" | "error" | "inferred">>;

function jobFact(kind: Fact["kind"], detail: JobDetail, what: string, more: More = {}): Fact {
  return {
    kind,
    subject: detail.job,
    summary: summary(`${jobName(detail)} ${what}`),
    ...more,
    operation: { kind: "job", subject: detail.job, runner: 0, loop: 0 },
    detail: { $case: "job", value: detail },
  };
}

function commandFact(
  kind: Fact["kind"],
  detail: JobDetail,
  what: string,
  more: More,
  value: Partial<ReturnType<typeof commandDetail>> = {},
): Fact {
  return {
    kind,
    subject: detail.job,
    summary: summary(`${detail.command} ${what}`),
    ...more,
    operation: { kind: "command", subject: name(detail.command), runner: 0, loop: 0, instance: detail.job },
    detail: { $case: "command", value: { ...commandDetail(detail), ...value } },
  };
}

/**
 * "up (job 01M7WSXR6NFM73VJ0F879K4ZNP)", "init (job …)": a line that is cut at a terminal's edge still names the
 * command.
 */
function jobName({ job, command, operation }: JobDetail): string {
  const does = command || operation;
  return does === "" ? `job ${job}` : `${does} (job ${job})`;
}

function timed(time: Event["occurred_at"]): Pick<Fact, "occurredAt"> {
  const occurredAt = validTimestamp(time);
  return occurredAt === undefined ? {} : { occurredAt };
}

/** Ids are ULIDs, made when the job was queued. */
function timeOfId(id: string): Timestamp | undefined {
  try {
    return timestampOfMs(decodeTime(id));
  } catch {
    return undefined;
  }
}
