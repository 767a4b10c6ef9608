import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { type Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { expect } from "vitest";
import { kindsOf } from "../../vagrant/stack.ts";
import { holes, sessionsOf } from "../recorded-events.ts";

/** What really happened to a job, observed or not. */
export type Deed = {
  /** The server's process that ran the job: 0 or, after the kill, 1. */
  readonly process: number;
  /** Its output: encoded GetJobStreamResponse.Terminal.Events. */
  readonly written: readonly Buffer[];
  /** Whether it ended before its process did. */
  readonly isOver: boolean;
};

export type Deeds = {
  readonly jobs: ReadonlyMap<string, Deed>;
  /** The final rows of the jobs in the database. */
  readonly rows: ReadonlyMap<string, Job>;
  /** The process that runs at the end: 1 if the first was killed, else 0. */
  readonly last: number;
  /** How often the recorder was killed: it may report more than once that the same output may be cut. */
  readonly recorderKills: number;
};

export type Figures = {
  readonly sessions: number;
  readonly written: number;
  readonly recorded: number;
  readonly gaps: number;
};

/**
 * Compares the record of a host with what was done there, when all that its server finally knows is in the log.
 *
 * A running process has all of its jobs, and all their output. So all of that is recorded, each piece of output at its
 * position, once, and that the output is whole.
 *
 * A process takes with it the output of its jobs, and which of them were over. What it reported before is recorded as
 * usual: each step once, and the beginning of the output. For each job whose start was recorded, a gap records that the
 * rest of its output is unknown, unless the output was read to its end in time. A job without a recorded end is
 * recorded as lost. A job that was never reported is not recorded at all.
 *
 * The next process has the unfinished jobs, as running and without their output: their ends are recorded, and that
 * output may be missing. It is another session if it turns out not to have a job whose end was recorded; nothing else
 * distinguishes it from the process before it.
 */
export function expectRecord(events: readonly RecordedEvent[], deeds: Deeds): Figures {
  const { jobs, last } = deeds;
  expect(holes(events)).toEqual([]);
  const sessions = sessionsOf(events);
  const isKnownByEnd = [...jobs].some(
    ([id, { process, isOver }]) => process < last && isOver && hasEnd(events, sessions[0], id),
  );
  expect(sessions, "sessions").toHaveLength(isKnownByEnd ? 2 : 1);
  expectOneAfterTheOther(events, sessions);
  const figures = { sessions: sessions.length, written: 0, recorded: 0, gaps: 0 };
  for (const [index, session] of sessions.entries()) {
    const sessionEvents = events.flatMap(({ event }) => (event.session === session ? [event] : []));
    const isLast = index === sessions.length - 1;
    expectOnlyThese(sessionEvents, jobs);
    for (const [id, deed] of jobs) {
      const { process, isOver } = deed;
      const isLiving = isLast && (process === last || !isOver);
      const isOfIt = sessions.length === 1 || process === index;
      const job: JobInSession = {
        id,
        deed,
        steps: stepsOf(deeds.rows.get(id)),
        recorderKills: deeds.recorderKills,
        fate: isLiving ? (process === last ? "living" : "inherited") : isOfIt ? "dying" : "foreign",
      };
      expectSteps(sessionEvents, job);
      const { recorded, gaps } = expectOutput(sessionEvents, job);
      figures.recorded += recorded;
      figures.gaps += gaps;
    }
  }
  for (const { written } of jobs.values()) figures.written += written.length;
  return figures;
}

type JobInSession = {
  readonly id: string;
  readonly deed: Deed;
  /** What really happened to the job, observed or not. */
  readonly steps: readonly string[];
  /**
   * Whether the process that ran it is running when the session ends, was killed, or left it to the next one in this
   * session; `foreign`: no process of the session had it.
   */
  readonly fate: "living" | "inherited" | "dying" | "foreign";
  readonly recorderKills: number;
};

/** Checks that no event of a session is recorded after another session has begun. */
function expectOneAfterTheOther(events: readonly RecordedEvent[], sessions: readonly string[]): void {
  const order = events.flatMap(({ event: { session } }) => (session === "" ? [] : [session]));
  expect(order.filter((session, index) => session !== order[index - 1])).toEqual(sessions);
}

function expectOnlyThese(sessionEvents: readonly Event[], jobs: Deeds["jobs"]): void {
  const subjects = sessionEvents.flatMap(({ channel, subject }) =>
    channel === "jobs" && subject !== "" ? [subject] : [],
  );
  expect(
    subjects.filter((id) => !jobs.has(id)),
    "jobs that nobody has made",
  ).toEqual([]);
}

function isEnd(kind: string): boolean {
  return ["job.succeeded", "job.failed", "job.canceled"].includes(kind);
}

function hasEnd(events: readonly RecordedEvent[], session: string | undefined, job: string): boolean {
  return events.some(({ event }) => event.session === session && event.subject === job && isEnd(event.kind));
}

/** The events of everything that happened to a job; a return to the queue only counts if it was observed. */
function stepsOf(row: Job | undefined): readonly string[] {
  if (row === undefined) throw new Error("a job without a row");
  const { assign_time, ack_time, state, operation } = row;
  const hasStarted = ack_time !== undefined;
  const isCommand = hasStarted && operation?.$case === "command";
  const end = state === Job_State.SUCCESS ? ["job.succeeded"] : ["job.canceled"];
  return [
    "job.queued",
    ...(assign_time === undefined ? [] : ["job.assigned"]),
    ...(hasStarted ? ["job.started"] : []),
    ...(isCommand ? ["command.started"] : []),
    ...(hasStarted ? [] : ["job.cancel_requested"]),
    ...end,
    ...(isCommand ? ["command.finished"] : []),
  ];
}

/** Checks that each step is recorded once, in order. */
function expectSteps(sessionEvents: readonly Event[], { id, deed, steps, fate }: JobInSession): void {
  const kinds = kindsOf(sessionEvents, id).filter((kind) => kind !== "job.requeued");
  if (fate === "foreign") expect(kinds, `${id} of another server`).toEqual([]);
  else if (fate === "dying")
    expect(kinds, `${id}, as far as it was recorded`).toEqual(stepsUntilDeath(kinds, steps, deed));
  else expect(kinds, `${id}, ${fate}`).toEqual(steps);
}

/** The events before the kill of its process, and those that result from the kill. */
function stepsUntilDeath(kinds: readonly string[], steps: readonly string[], { isOver }: Deed): readonly string[] {
  const end = steps.findIndex(isEnd);
  const differs = kinds.findIndex((kind, index) => kind !== steps[index]);
  const count = differs < 0 ? kinds.length : differs;
  const seen = steps.slice(0, isOver ? count : Math.min(count, end));
  // Unfinished jobs continue with the next process, and jobs that were never observed are not expected.
  if (!isOver || seen.length === 0 || count > end) return seen;
  return [...seen, "job.lost", ...(seen.includes("command.started") ? ["command.finished"] : [])];
}

/** Checks that each piece is at its position, once, and that missing output is a gap. */
function expectOutput(sessionEvents: readonly Event[], { id, deed: { written }, fate, recorderKills }: JobInSession) {
  let recorded = 0;
  let gaps = 0;
  let lateGaps = 0;
  let isWhole = false;
  for (const { kind, subject, detail, original } of sessionEvents) {
    const { output: gap, reason } =
      detail?.$case === "gap" && detail.value.output?.job === id ? detail.value : { output: undefined, reason: "" };
    const isAbout = subject === id && (kind === "terminal.written" || kind === "mirror.received");
    if (gap === undefined && !isAbout) continue;
    expect(isWhole, `${kind} of ${id} after its end`).toBe(false);
    if (gap !== undefined) {
      expect(gap.index, `where the output of ${id} may end`).toBe(BigInt(recorded));
      expect(gap.next_index, `the server keeps all output of ${id}`).toBeUndefined();
      // On a busy machine a stream may be opened so late that output could be missing by then; see docs/vagrant.md#output.
      const isLate = / was first read when it had run for /.test(reason);
      if (isLate) expect(++lateGaps, `late openings of ${id}`).toBe(1);
      else gaps++;
    } else if (detail?.$case === "text") {
      expect(detail.value.output?.index, `the place of output of ${id}`).toBe(BigInt(recorded));
      expect(original?.bytes, `output ${recorded} of ${id}`).toEqual(written[recorded++]);
    } else isWhole = true;
  }
  const isKnown = fate === "living" || (isWhole && gaps === 0);
  if (isKnown) expect(recorded, `all output of ${id}`).toBe(written.length);
  if (fate === "living" || fate === "inherited") expect(isWhole, `the end of ${id}`).toBe(true);
  if (fate === "foreign") expect({ recorded, gaps, isWhole }, id).toEqual({ recorded: 0, gaps: 0, isWhole: false });
  const hasBegun = recorded > 0 || kindsOf(sessionEvents, id).includes("job.started");
  if (hasBegun && !isWhole) expect(gaps, `gaps of ${id}, of which nobody knows the rest`).toBeGreaterThan(0);
  expect(gaps, `gaps of ${id}`).toBeLessThanOrEqual(1 + recorderKills);
  return { recorded, gaps };
}
