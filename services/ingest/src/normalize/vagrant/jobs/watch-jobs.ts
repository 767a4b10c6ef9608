import type { Look, Look_One, Look_StreamEnded, Look_Streamed } from "@tapedeck/proto/tapedeck/v1/look";
import { Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { assertNever } from "@tapedeck/shared/assert-never";
import type { Moment } from "@tapedeck/shared/time/moment";
import { momentFrom, momentKey } from "@tapedeck/shared/time/moment";
import { shaOf } from "../../../record/frames/original.ts";
import type { Fact } from "../../fact.ts";
import { message as errorText, summary, unreadable } from "../../facts.ts";
import { newDescriptionDue } from "../../inventory/description-due.ts";
import type { ObservationOutcome, Observed, Watcher, WatchOptions, YieldPoint } from "../../inventory/observing.ts";
import { yieldPoint } from "../../inventory/observing.ts";
import { jobDetail, unknownJob } from "./job-detail.ts";
import { isFinished, isOver, jobFacts, lostFacts, reportedAfter, wasReported } from "./job-facts.ts";
import { completeEvent, type GivenEnd, messageType, type Ran, type Stage } from "./job-output.ts";
import { type JobEntry, jobsIn, type StreamMessage, streamMessageIn } from "./job-wire.ts";
import { type KnownJob, knownJobs, remember } from "./jobs-memory.ts";
import { windowSize as serverWindow } from "./output-alignment.ts";
import { staleJobs } from "./stale-jobs.ts";

export type JobsWatcher = Watcher<Observed> & {
  /** The id of the command's job that is running on a project (by its resource_id), as far as is known. */
  readonly runningCommand: (project: string) => string | undefined;
};

export type JobsOptions = {
  /** Events of the channel after which all that is known is told anew. */
  readonly describeEvery?: number;
  /** Of a server that keeps another number of terminal events. */
  readonly windowSize?: number;
};

type Original = Extract<ObservationOutcome, { what: "frame" }>["original"];

const jobType = "hashicorp.vagrant.Job";
const listType = "hashicorp.vagrant.ListJobsResponse";
/** Those of events are no longer than 1,000 characters, and who resumes knows jobs by these. */
const longestId = 200;
const notFound = 5;

/**
 * Watches channel "jobs": job-facts.ts has what a job tells, output-alignment.ts which of its streams' output is new. Jobs
 * are told as they are answered, by whatever answers first. A server keeps its finished jobs, so one that does not know
 * the newest of them any more is another one.
 */
export function watchJobs(
  { mask, maskAfter, textTtl }: WatchOptions,
  { describeEvery = 10_000, windowSize = serverWindow }: JobsOptions = {},
): JobsWatcher {
  const known = knownJobs({ mask, maskAfter, windowSize });
  const description = newDescriptionDue(describeEvery, textTtl);
  /** Nothing was seen before: of this session, by anybody. */
  let isFirst = true;
  /** It may be another server since the last look. */
  let isUnsure = false;
  let listedAt: Moment | undefined;
  /** Why there was no list since then: jobs that came meanwhile are not known. */
  let unlisted: string | undefined;
  let brokenList: Buffer | undefined;
  /** By job, or by digest where no job can be known by such an id; as answered last: it could not be read. */
  const brokenJobs = new Map<string, Buffer>();
  /** What was told last of a look that would be told again: when, and how much of it. */
  let retold = { at: "", count: 0 };

  function frame(facts: readonly [Fact, ...Fact[]], at: Moment, original?: Original): ObservationOutcome {
    return { what: "frame", ...(original && { original }), facts, observedAt: at };
  }

  /** What no memory of jobs keeps from being told twice, when the recorder before this one was stopped right after it. */
  function once(seen: ObservationOutcome, at: Moment): readonly ObservationOutcome[] {
    if (retold.count === 0 || retold.at !== momentKey(at)) return [seen];
    retold = { ...retold, count: retold.count - 1 };
    return [];
  }

  function cannotRead(type: string, bytes: Uint8Array, cause: unknown, at: Moment): readonly ObservationOutcome[] {
    return once(frame([unreadable(bytes, cause)], at, { type, ...mask(type, bytes) }), at);
  }

  function stageOf({ reported: told, ran }: KnownJob): Stage {
    return { hasStarted: wasReported(told, "job.started"), isFinished: isFinished(told), ran };
  }

  function tell(job: KnownJob, facts: readonly Fact[], at: Moment, original?: Original): readonly ObservationOutcome[] {
    const [first, ...rest] = facts;
    if (first === undefined) return [];
    for (const fact of facts) job.reported = reportedAfter(job.reported, fact);
    if (isFinished(job.reported)) job.output?.finished(at);
    return [frame([first, ...rest], at, original)];
  }

  function answered({ id, bytes }: JobEntry, at: Moment, stale = false): readonly ObservationOutcome[] {
    const before = known.byId.get(id);
    if (before !== undefined && isFinished(before.reported) && isOver(before.reported)) return [];
    const key = brokenKey({ id, bytes });
    const broken = brokenJobs.get(key);
    if (broken?.equals(bytes)) return [];
    try {
      if (!isKnowable(id)) throw new Error(`its id has ${id.length} characters`);
      const original = { type: jobType, ...mask(jobType, bytes) };
      const job = Job.decode(original.bytes);
      const one = known.get(id);
      one.ran = ranIn(job) ?? one.ran;
      const facts = jobFacts(job, id, one.reported, { stale });
      const seen = tell(one, facts, at, original);
      // An answer that is older than what was told says nothing of what is now.
      if (one.reported.state === job.state) remember(one, jobDetail(job, id));
      brokenJobs.delete(key);
      return seen;
    } catch (cause) {
      brokenJobs.set(key, Buffer.from(bytes));
      return cannotRead(jobType, bytes, cause, at);
    }
  }

  /** One job after the other: to read and mask a thousand large ones takes many seconds. */
  function* list(bytes: Uint8Array, at: Moment): Generator<ObservationOutcome | YieldPoint, void> {
    let entries: readonly JobEntry[];
    try {
      entries = jobsIn(bytes);
    } catch (cause) {
      if (brokenList?.equals(bytes)) return;
      brokenList = Buffer.from(bytes);
      return yield* cannotRead(listType, bytes, cause, at);
    }
    const listed = new Set(entries.map(({ id }) => id));
    const newest = isUnsure ? newestFinished() : undefined;
    if (newest !== undefined && !listed.has(newest)) return yield* anotherSession(listed, at);
    isUnsure = false;
    wasListed(at);
    const stale = isFirst ? staleJobs(yield* readableIn(entries), at) : undefined;
    isFirst = false;
    const keys = new Set(entries.map(brokenKey));
    for (const key of brokenJobs.keys()) if (!keys.has(key)) brokenJobs.delete(key);
    for (const entry of entries) {
      yield* answered(entry, at, stale?.has(entry.id));
      yield yieldPoint;
    }
    yield* missing(listed, at);
  }

  function newestFinished(): string | undefined {
    let newest: string | undefined;
    for (const { id, reported: told } of known.byId.values()) {
      if (isFinished(told) && (newest === undefined || id > newest)) newest = id;
    }
    return newest;
  }

  function* missing(listed: ReadonlySet<string>, at: Moment): Generator<ObservationOutcome | YieldPoint, void> {
    for (const job of [...known.byId.values()]) {
      yield yieldPoint;
      if (listed.has(job.id)) continue;
      if (wasReported(job.reported, "job.queued") && !isFinished(job.reported)) yield* lose(job, at);
      else {
        known.forget(job.id);
        yield* job.output?.abandoned(stageOf(job), at) ?? [];
      }
    }
  }

  function lose(job: KnownJob, at: Moment): readonly ObservationOutcome[] {
    const facts = lostFacts(job.detail ?? unknownJob(job.id, job.reported.state), job.reported);
    if (facts.length === 0) return [];
    // In this order: who is stopped between the two tells the first one twice, and loses nothing.
    const cut = job.output?.abandoned(stageOf(job), at) ?? [];
    job.detail = undefined;
    return [...cut, ...tell(job, facts, at)];
  }

  /** Whatever came while there was no list stays listed, as long as the server is the same. */
  function wasListed(at: Moment): void {
    listedAt = at;
    unlisted = undefined;
  }

  function unlistedUntil(at: Moment): readonly ObservationOutcome[] {
    if (unlisted === undefined) return [];
    return [{ what: "gap", reason: `the jobs could not be listed: ${unlisted}`, after: listedAt, until: at }];
  }

  /** `listed`: what the new server knows, too. */
  function* anotherSession(listed: ReadonlySet<string>, at: Moment): Generator<ObservationOutcome | YieldPoint, void> {
    yield* unlistedUntil(at);
    for (const job of [...known.byId.values()]) {
      yield yieldPoint;
      const isLost = !listed.has(job.id) && !isFinished(job.reported);
      yield* isLost ? lose(job, at) : (job.output?.abandoned(stageOf(job), at) ?? []);
    }
    yield { what: "another session" };
  }

  function askedFor({ id, code, bytes, message }: Look_One, at: Moment): Observed {
    const job = known.byId.get(id);
    if (code === 0) {
      if (isUnsure && id === newestFinished()) isUnsure = false;
      return answered({ id, bytes }, at);
    }
    if (job === undefined || code !== notFound) return [];
    if (!isFinished(job.reported)) return lose(job, at);
    // Its row can be deleted on a server that goes on.
    const isUnknown = !message.includes("record not found");
    return isUnsure && isUnknown && id === newestFinished() ? anotherSession(new Set(), at) : [];
  }

  function* streamed(
    { job: id, bytes, stream, before: given }: Look_Streamed,
    at: Moment,
  ): Generator<ObservationOutcome, void> {
    const before = known.byId.get(id);
    if (!isKnowable(id) || (before !== undefined && before.output === undefined)) return;
    try {
      yield* toldBy(id, streamMessageIn(bytes), { stream, before: Number(given), bytes }, at);
    } catch (cause) {
      yield* cannotRead(messageType, bytes, cause, at);
    }
  }

  function toldBy(id: string, message: StreamMessage, given: GivenEnd, at: Moment): Iterable<ObservationOutcome> {
    switch (message.what) {
      case "open":
        return [];
      case "state": {
        const seen = message.job === undefined ? [] : answered({ id, bytes: message.job }, at);
        // What the stream itself says: others may have told already that the job is over, and what this one gives is cut then.
        known.get(id).output?.told(given.stream, message);
        return seen;
      }
      case "terminal": {
        const job = known.get(id);
        return job.output?.terminal({ ...given, ...message }, stageOf(job), at) ?? [];
      }
      case "complete": {
        const job = known.get(id);
        const { seen = [], isFinal = false } = job.output?.complete(given, stageOf(job), at) ?? {};
        if (isFinal) job.output = undefined;
        return seen;
      }
      case "error":
      case "unknown":
        return once(mirrored(id, message.what, given.bytes, at), at);
      default:
        return assertNever(message);
    }
  }

  function mirrored(job: string, what: string, bytes: Uint8Array, at: Moment): ObservationOutcome {
    const line = summary(`the stream of job ${job} told something that is not known`);
    const detail = { $case: "mirror", value: { what, status: "", task_id: "", subtask_id: "" } } as const;
    const original = { type: messageType, ...mask(messageType, bytes) };
    return frame([{ kind: "mirror.received", subject: job, summary: line, detail }], at, original);
  }

  function streamEnded({ job: id, stream, code }: Look_StreamEnded, at: Moment): readonly ObservationOutcome[] {
    const job = known.byId.get(id);
    return job?.output?.ended(stream, code, stageOf(job), at) ?? [];
  }

  function see({ seen }: Look, at: Moment): Observed {
    switch (seen?.$case) {
      case "all":
        return list(seen.value, at);
      case "one":
        return askedFor(seen.value, at);
      case "streamed":
        return streamed(seen.value, at);
      case "stream_ended":
        return streamEnded(seen.value, at);
      case "same":
        if (!isUnsure) wasListed(at);
        return [];
      case "failed":
        // Before it is known whether this is the same server, that says nothing of the one that was looked at.
        if (!isUnsure) unlisted ??= errorText(seen.value.message) || `code ${seen.value.code}`;
        return [];
      default:
        return [];
    }
  }

  return {
    *observe(_, look, at) {
      for (const one of see(look, at)) {
        if (one.what === "frame") for (const fact of one.facts) description.told(fact, one.observedAt);
        yield one;
        if (one.what === "another session") return;
      }
      if (!description.isDue(at)) return;
      description.given();
      yield* known.describe(at);
    },
    connected() {
      isUnsure = newestFinished() !== undefined;
      for (const { output } of known.byId.values()) output?.connected();
    },
    resume(event) {
      isFirst = false;
      if (event.kind === "host.described") description.given();
      else description.told(event, event.observed_at);
      known.resume(event);
      const isOdd = event.kind === "upstream.unreadable" || isUnknownMessage(event);
      if (!isOdd) return;
      const at = momentKey(event.observed_at);
      retold = { at, count: at === retold.at ? retold.count + 1 : 1 };
    },
    runningCommand(project) {
      for (const { id, reported: told, detail } of known.byId.values()) {
        const isRunning = told.state === Job_State.RUNNING && detail?.operation === "command";
        if (isRunning && detail.scope === "project" && detail.scope_id === project) return id;
      }
      return undefined;
    },
  };
}

function isKnowable(id: string): boolean {
  return id !== "" && id.length <= longestId;
}

function brokenKey({ id, bytes }: JobEntry): string {
  return isKnowable(id) ? id : shaOf(bytes);
}

function* readableIn(entries: readonly JobEntry[]): Generator<YieldPoint, readonly Job[]> {
  const jobs: Job[] = [];
  for (const { bytes } of entries) {
    yield yieldPoint;
    try {
      jobs.push(Job.decode(bytes));
    } catch {
      // It is told to be so when it is looked at.
    }
  }
  return jobs;
}

function ranIn({ ack_time, complete_time, cancel_time, state }: Job): Ran | undefined {
  const from = momentFrom(ack_time);
  const until = isFinished({ state }) ? momentFrom(complete_time ?? cancel_time) : undefined;
  return from && { from, until };
}

function isUnknownMessage({ detail }: Parameters<Watcher["resume"]>[0]): boolean {
  return detail?.$case === "mirror" && detail.value.what !== completeEvent;
}
