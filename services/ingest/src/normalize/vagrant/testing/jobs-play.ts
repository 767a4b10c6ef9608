import { Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import {
  type DeepPartial,
  GetJobStreamResponse,
  Job,
  Job_State,
  ListJobsResponse,
  GetJobStreamResponse_Terminal_Event as TerminalEvent,
} from "@tapedeck/proto/vagrant/vagrant";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import type { Fact } from "../../fact.ts";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import { outcomesOf } from "../../inventory/observing.ts";
import {
  type ComparedFact,
  type ComparedOutcome,
  compared,
  type FactFields,
  fact,
  frame,
} from "../../inventory/testing/outcome-fields.ts";
import { JobsWatcher, type JobsWatcherOptions } from "../jobs/jobs-watcher.ts";
import type { OutputMasks } from "../jobs/output-pieces.ts";

// Jobs and observations of them for tests, and the fields of a watcher's facts that tests compare.

export type JobFields = {
  readonly state: Exclude<keyof typeof Job_State, "UNRECOGNIZED">;
  /** A command's name; absent: an init job. */
  readonly command?: string | undefined;
  readonly project?: string;
  /** Ms since 1970. */
  readonly queued?: number | undefined;
  readonly assigned?: number;
  readonly acked?: number;
  readonly canceled?: number;
  readonly completed?: number;
  readonly expires?: number;
  readonly result?: DeepPartial<Job>["result"];
  readonly error?: DeepPartial<Job>["error"];
  readonly more?: DeepPartial<Job>;
};

/** A job in this state, with those times alone that are given and that of queueing. */
export function job(id: string, observation: JobFields): Job {
  const { state, command, project = "p1", result, error, more } = observation;
  const time = (ms: number | undefined) => (ms === undefined ? undefined : timestampOfMs(ms));
  const operation =
    command === undefined
      ? ({ $case: "init", value: {} } as const)
      : ({ $case: "command", value: { command, component: { name: command } } } as const);
  return Job.fromPartial({
    id,
    state: Job_State[state],
    operation,
    result,
    error,
    scope: { $case: "project", value: { resource_id: project, name: "shop", path: "/shop" } },
    target_runner: { target: { $case: "id", value: { id: "r1" } } },
    queue_time: time("queued" in observation ? observation.queued : 1_000),
    assign_time: time(observation.assigned),
    ack_time: time(observation.acked),
    complete_time: time(observation.completed),
    cancel_time: time(observation.canceled),
    expire_time: time(observation.expires),
    ...more,
  });
}

export type Play = {
  readonly watcher: JobsWatcher;
  /** Everything that was seen, in order. */
  readonly record: ObservationOutcome[];
  readonly observation: (at: number, seen: Observation["result"]) => readonly ComparedOutcome[];
  readonly list: (at: number, ...jobs: readonly Job[]) => readonly ComparedOutcome[];
  /** Asked for by its id; a number: refused with that code. */
  readonly one: (at: number, id: string, answer: Job | number, message?: string) => readonly ComparedOutcome[];
  /** `before`: terminal events that it gave before it is shown. */
  readonly stream: (id: string, name?: string, before?: number) => StreamPlay;
};

/** One opening of a job's stream. */
export type StreamPlay = {
  readonly id: string;
  readonly reports: (at: number, event: GetJobStreamResponse["event"]) => readonly ComparedOutcome[];
  readonly bytes: (at: number, bytes: Uint8Array) => readonly ComparedOutcome[];
  readonly state: (at: number, job: Job) => readonly ComparedOutcome[];
  readonly prints: (at: number, events: readonly TerminalEvent[], buffered?: boolean) => readonly ComparedOutcome[];
  readonly complete: (at: number) => readonly ComparedOutcome[];
  readonly ends: (at: number, code?: number) => readonly ComparedOutcome[];
};

export const unmasked = (_: string, bytes: Uint8Array) => ({ bytes, redacted: 0 });

/** Plays observations (at ms since 1970) to a watcher; each call gives the outcomes, as tests compare them. */
export function play(
  { textTtl, ...options }: JobsWatcherOptions & { readonly textTtl?: number } = {},
  masks: OutputMasks = { mask: unmasked },
): Play {
  const watcher = new JobsWatcher({ ...masks, settings: {}, textTtl }, options);
  const record: ObservationOutcome[] = [];
  const observation: Play["observation"] = (at, what) => {
    // The observation is encoded and decoded, as on its way over the wire.
    const seen = outcomesOf(
      watcher.observe("jobs", Observation.decode(Observation.encode({ result: what }).finish()), timestampOfMs(at)),
    );
    record.push(...seen);
    return comparedJobs(seen);
  };
  return {
    watcher,
    record,
    observation,
    list: (at, ...jobs) =>
      observation(at, { $case: "all", value: Buffer.from(ListJobsResponse.encode({ jobs: [...jobs] }).finish()) }),
    one(at, id, answer, message = "job not found") {
      const none = { id, bytes: Buffer.alloc(0), code: 0, message: "" };
      const value =
        typeof answer === "number"
          ? { ...none, code: answer, message }
          : { ...none, bytes: Buffer.from(Job.encode(answer).finish()) };
      return observation(at, { $case: "one", value });
    },
    stream(id, name = ulid(), given = 0) {
      let before = given;
      const bytes: StreamPlay["bytes"] = (at, message) => {
        const value = { job: id, bytes: Buffer.from(message), stream: name, before: BigInt(before) };
        return observation(at, { $case: "streamed", value });
      };
      const reports: StreamPlay["reports"] = (at, event) => bytes(at, GetJobStreamResponse.encode({ event }).finish());
      return {
        id: name,
        reports,
        bytes,
        state: (at, now) =>
          reports(at, { $case: "state", value: { previous: 0, current: now.state, job: now, canceling: false } }),
        prints(at, events, buffered = false) {
          const reported = reports(at, { $case: "terminal", value: { events: [...events], buffered } });
          before += events.length;
          return reported;
        },
        complete: (at) => reports(at, { $case: "complete", value: {} }),
        ends: (at, code = 0) =>
          observation(at, { $case: "stream_ended", value: { job: id, stream: name, code, message: "" } }),
      };
    },
  };
}

/** The same, known from the log alone; a recorder begins with a connection. */
export function resumed(before: Play, options: JobsWatcherOptions = {}, masks?: OutputMasks): Play {
  const after = play(options, masks);
  for (const event of eventsOf(before.record)) after.watcher.resume(event);
  after.watcher.connected();
  return after;
}

export function line(msg: string): TerminalEvent {
  return TerminalEvent.fromPartial({ event: { $case: "line", value: { msg } } });
}

/** "a0", "a1" … */
export function lines(from: number, next: number, prefix = "a"): readonly TerminalEvent[] {
  return Array.from({ length: next - from }, (_, index) => line(`${prefix}${from + index}`));
}

/** The outcomes as tests compare them. */
export function comparedJobs(outcomes: readonly ObservationOutcome[]): readonly ComparedOutcome[] {
  return compared(outcomes, (one) => ({ ...(one.outcome && { outcome: one.outcome }), ...detailFields(one) }));
}

function detailFields({ detail }: Fact): FactFields {
  switch (detail?.$case) {
    case "job": {
      const { attempt, reason } = detail.value;
      return { ...(attempt > 0 && { attempt }), ...(reason !== "" && { reason }) };
    }
    case "command":
      return { command: detail.value.command };
    case "mirror":
      return { what: detail.value.what };
    case "text":
      return { ...(detail.value.output && { index: detail.value.output.index }) };
    default:
      return {};
  }
}

/** The facts about a job with the command `up` that is running when it is seen for the first time. */
export function startedFacts(job: string): readonly ComparedFact[] {
  return [
    fact("job.queued", job),
    fact("job.assigned", job, { attempt: 1 }),
    fact("job.started", job),
    fact("command.started", job, { command: "up" }),
  ];
}

/** The facts about such a job whose command has succeeded. */
export function succeededFacts(job: string): readonly ComparedFact[] {
  return [
    fact("job.succeeded", job, { outcome: Outcome.OUTCOME_SUCCEEDED }),
    fact("command.finished", job, { outcome: Outcome.OUTCOME_SUCCEEDED, command: "up" }),
  ];
}

type OutputRange = { readonly job: string; readonly index: bigint; readonly next_index?: bigint };
type MissingRange = OutputRange & { readonly at_least?: boolean };

/** A frame for each terminal event from `index` up to, and without, `next_index`. */
export function written({ job, index, next_index }: Required<OutputRange>): readonly ComparedOutcome[] {
  const count = Number(next_index - index);
  return Array.from({ length: count }, (_, offset) =>
    frame(fact("terminal.written", job, { index: index + BigInt(offset) })),
  );
}

/** A gap in a job's output; without `next_index`, its end is not known. */
export function outputGap(output: MissingRange): ComparedOutcome {
  return { what: "gap", output };
}

export function indexOf(seen: ObservationOutcome): bigint | undefined {
  const detail = seen.what === "frame" ? seen.facts[0].detail : undefined;
  return detail?.$case === "text" ? detail.value.output?.index : undefined;
}

export function factsOf(record: readonly ObservationOutcome[]): readonly Fact[] {
  return record.flatMap((seen) => (seen.what === "frame" ? seen.facts : []));
}

/** The events that the log would give back. */
export function eventsOf(record: readonly ObservationOutcome[]): Event[] {
  let ordinal = 0n;
  return record.flatMap((seen) => {
    if (seen.what !== "frame") return [];
    return seen.facts.map(({ kind, subject = "", detail, occurredAt }, part) => {
      const original = part === 0 ? seen.original : undefined;
      ordinal += 1n;
      const bytes = original && Buffer.from(original.bytes);
      const event = Event.fromPartial({
        channel: "jobs",
        ordinal,
        kind,
        subject,
        part,
        observed_at: seen.observedAt,
        occurred_at: occurredAt ?? seen.observedAt,
        ...(original && bytes && { original: { ...original, bytes, size: BigInt(bytes.length) } }),
        ...(detail && { detail: detail as NonNullable<Event["detail"]> }),
      });
      return Event.decode(Event.encode(event).finish());
    });
  });
}
