import { type Event, type JobDetail, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { type Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments, momentFrom, momentOfMs } from "@tapedeck/shared/time/moment";
import { decodeTime } from "ulid";
import type { Fact } from "../../fact.ts";
import { canceled, failed, failure, name, summary } from "../../facts.ts";
import { commandDetail, commandEnding, type Ending, errorOf, jobDetail } from "./job-detail.ts";

/** What has been told of a job. */
export type ReportedFacts = {
  /** hashicorp.vagrant.Job.State, as told last. */
  readonly state: number;
  /** How often, by kind. And "stale": it was told to be. */
  readonly times: Readonly<Record<string, number>>;
};

export const nothingReported: ReportedFacts = { state: Job_State.UNKNOWN, times: {} };

export function isFinished({ state }: Pick<ReportedFacts, "state">): boolean {
  return state === Job_State.SUCCESS || state === Job_State.ERROR;
}

/** Nothing of it is left to tell. A recorder can have been stopped between the end of a job and that of its command. */
export function isOver(told: ReportedFacts): boolean {
  const isEnded = isFinished(told) || wasReported(told, "job.lost");
  return isEnded && (!wasReported(told, "command.started") || wasReported(told, "command.finished"));
}

export function wasReported({ times }: ReportedFacts, kind: Fact["kind"] | "stale"): boolean {
  return (times[kind] ?? 0) > 0;
}

/** After one more fact, which was told now or is read back from the log. */
export function reportedAfter(
  { state, times }: ReportedFacts,
  { kind, detail }: Pick<Fact, "kind" | "detail">,
): ReportedFacts {
  const more = { ...times, [kind]: (times[kind] ?? 0) + 1 };
  const isStale = detail?.$case === "job" && detail.value.stale;
  // Not what the job says of itself: of the facts that one answer tells some may be in the log and the others not yet.
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
 * What a job, as it was answered, tells that has not been told, in the order in which it happened; nothing where it is
 * older than what was told (a list and a stream answer independently). Its times tell also the steps that nobody saw,
 * save that of a second assignment and what follows it nothing is left to see.
 */
export function jobFacts(job: Job, id: string, told: ReportedFacts, { stale = false } = {}): readonly Fact[] {
  if (progress(job.state) < progress(told.state)) return [];
  const about: About = { job, told, detail: { ...jobDetail(job, id), stale: stale || wasReported(told, "stale") } };
  if (isFinished(told)) return end(about).filter(({ kind }) => kind === "command.finished");
  const start = startFacts(about);
  const cancel = cancelFacts(about);
  return [
    ...queueFacts(about),
    ...(isCanceledFirst(job) ? [...cancel, ...start] : [...start, ...cancel]),
    ...end(about),
  ];
}

/** The server does not know it any more, though it was not finished. `answered`: as it was last. */
export function lostFacts(answered: JobDetail, told: ReportedFacts): readonly Fact[] {
  const detail = { ...answered, stale: wasReported(told, "stale") };
  const unknown = { outcome: Outcome.OUTCOME_UNKNOWN };
  const lost = jobFact("job.lost", detail, "was lost: the server knows it no more", unknown);
  return [...(wasReported(told, "job.lost") ? [] : [lost]), ...commandEnd(detail, told, unknown, { inferred: true })];
}

type About = { readonly job: Job; readonly told: ReportedFacts; readonly detail: JobDetail };

/** A job goes back from WAITING to QUEUED, and never further. */
function progress(state: number): number {
  if (isFinished({ state })) return 2;
  return state === Job_State.RUNNING ? 1 : 0;
}

function queueFacts({ job, told, detail }: About): readonly Fact[] {
  const { queue_time, assign_time, ack_time, expire_time, state } = job;
  const facts: Fact[] = [];
  if (!wasReported(told, "job.queued")) {
    const expires = momentFrom(expire_time);
    const queued = { ...detail, ...(expires && { expire_time: expires }) };
    const occurredAt = momentFrom(queue_time) ?? timeOfId(detail.job);
    facts.push(jobFact("job.queued", queued, "was queued", { ...(occurredAt && { occurredAt }) }));
  }
  let assigned = told.times["job.assigned"] ?? 0;
  const requeued = told.times["job.requeued"] ?? 0;
  const isStarting = (ack_time !== undefined || state === Job_State.RUNNING) && !wasReported(told, "job.started");
  // assign_time stays that of the first assignment, so of later ones the state alone tells.
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

function startFacts({ job, told, detail }: About): readonly Fact[] {
  if (job.ack_time === undefined && job.state !== Job_State.RUNNING) return [];
  const time = timed(job.ack_time);
  const isCommandTold = detail.operation !== "command" || wasReported(told, "command.started");
  return [
    ...(wasReported(told, "job.started") ? [] : [jobFact("job.started", detail, "started", time)]),
    ...(isCommandTold ? [] : [commandFact("command.started", detail, "started", time)]),
  ];
}

function cancelFacts({ job, told, detail }: About): readonly Fact[] {
  if (job.cancel_time === undefined || wasReported(told, "job.cancel_requested")) return [];
  // Time that was up and a runner that was lost are canceled without anybody having asked for it.
  if (isCanceled(job) && cancelReason(job, told) !== "requested") return [];
  return [jobFact("job.cancel_requested", detail, "is to be canceled", timed(job.cancel_time))];
}

/** Its time can be up while it waits for its runner, which takes it all the same. */
function isCanceledFirst({ cancel_time, ack_time }: Job): boolean {
  return cancel_time !== undefined && ack_time !== undefined && compareMoments(cancel_time, ack_time) < 0;
}

function end({ job, told, detail }: About): readonly Fact[] {
  if (job.state === Job_State.SUCCESS) {
    const ending = commandEnding(job);
    const time = timed(job.complete_time);
    const fact = jobFact("job.succeeded", detail, successOf(detail, ending), { ...time, ...ending });
    return [fact, ...commandEnd(detail, told, ending, { job, ...time })];
  }
  if (job.state !== Job_State.ERROR) return [];
  if (isCanceled(job)) {
    const reason = cancelReason(job, told);
    const time = timed(job.cancel_time);
    const fact = jobFact("job.canceled", { ...detail, reason }, cancelWords[reason], { ...time, ...canceled });
    return [fact, ...commandEnd(detail, told, canceled, { job, ...time, inferred: true })];
  }
  const ending = failed(job.error && errorOf(job.error));
  const time = timed(job.complete_time);
  const line = failure(jobName(detail), ending.error);
  const fact = { ...jobFact("job.failed", detail, "", { ...time, ...ending }), summary: line };
  return [fact, ...commandEnd(detail, told, ending, { job, ...time, inferred: true })];
}

function successOf({ command }: JobDetail, { outcome }: Ending): string {
  if (outcome === Outcome.OUTCOME_SUCCEEDED) return "succeeded";
  if (outcome === Outcome.OUTCOME_CANCELED) return `is over: ${command} was canceled`;
  return outcome === Outcome.OUTCOME_FAILED ? `is over: ${command} failed` : "is over, without a result";
}

/** Code 1 without a complete_time: no runner has said that it is over. */
function isCanceled({ state, error, cancel_time, complete_time }: Job): boolean {
  return state === Job_State.ERROR && error?.code === 1 && cancel_time !== undefined && complete_time === undefined;
}

type CancelReason = "requested" | "expired" | "heartbeat";

const cancelWords: Readonly<Record<CancelReason, string>> = {
  requested: "was canceled",
  expired: "was canceled: no runner took it in time",
  heartbeat: "was canceled: its runner was not heard of for two minutes",
};

function cancelReason({ cancel_time, expire_time, ack_time }: Job, told: ReportedFacts): CancelReason {
  if (ack_time !== undefined) return wasReported(told, "job.cancel_requested") ? "requested" : "heartbeat";
  const isLate = cancel_time && expire_time && compareMoments(cancel_time, expire_time) >= 0;
  return isLate ? "expired" : "requested";
}

type CommandEnd = Pick<Fact, "occurredAt" | "inferred"> & { readonly job?: Job };

/** `inferred`: nothing is said of the command itself, but it can't go on without its job. */
function commandEnd(
  detail: JobDetail,
  told: ReportedFacts,
  ending: Ending,
  { job, ...more }: CommandEnd,
): readonly Fact[] {
  const hasStarted = wasReported(told, "command.started") || job?.ack_time !== undefined;
  if (!hasStarted || detail.operation !== "command" || wasReported(told, "command.finished")) return [];
  const run = job?.result?.run;
  const isInferred = more.inferred === true || run === undefined;
  const value = {
    succeeded: ending.outcome === Outcome.OUTCOME_SUCCEEDED,
    exit_code: run?.exit_code ?? 0,
    canceled: wasReported(told, "job.cancel_requested") || (job?.cancel_time !== undefined && !isCanceled(job)),
  };
  const how = { ...more, ...ending, ...(isInferred && { inferred: true }) };
  const fact = commandFact("command.finished", detail, commandWords(ending), how, value);
  return [isFailed(ending) ? { ...fact, summary: failure(detail.command, ending.error) } : fact];
}

function commandWords({ outcome }: Ending): string {
  if (outcome === Outcome.OUTCOME_SUCCEEDED) return "succeeded";
  return outcome === Outcome.OUTCOME_CANCELED ? "was canceled" : "is over, nobody knows how";
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

/** "up (job 01M7WSXR6NFM73VJ0F879K4ZNP)", "init (job …)": a line that is cut at a terminal's edge still says what it does. */
function jobName({ job, command, operation }: JobDetail): string {
  const does = command || operation;
  return does === "" ? `job ${job}` : `${does} (job ${job})`;
}

function timed(time: Event["occurred_at"]): Pick<Fact, "occurredAt"> {
  const occurredAt = momentFrom(time);
  return occurredAt === undefined ? {} : { occurredAt };
}

/** Ids are ULIDs, made when the job was queued. */
function timeOfId(id: string): Moment | undefined {
  try {
    return momentOfMs(decodeTime(id));
  } catch {
    return undefined;
  }
}
