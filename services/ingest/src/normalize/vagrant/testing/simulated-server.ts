import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import {
  GetJobStreamResponse,
  Job,
  Job_State,
  ListJobsResponse,
  type GetJobStreamResponse_Terminal_Event as TerminalEvent,
} from "@tapedeck/proto/vagrant/vagrant";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import { job, line } from "./jobs-play.ts";

// A server and the tap that polls it, for tests that need thousands of histories: the observations after each step.

export type Shown = { readonly at: number; readonly seen: Observation["result"] | "connected" };

export type SimulatedServer = {
  readonly observations: Shown[];
  /** What the jobs have printed. */
  readonly printed: (id: string) => readonly TerminalEvent[];
  readonly queue: () => void;
  readonly step: (id: string | undefined, step: JobAction) => void;
  /** The job's stream gives the next message, of at most so many events; it is opened if it is not. */
  readonly pull: (id: string | undefined, max: number) => void;
  /** The job's stream is lost. */
  readonly lose: (id: string | undefined) => void;
  readonly list: () => void;
  /** The connection is lost, and made anew. */
  readonly reconnect: () => void;
  /**
   * Allowed only while no job is over, so that an observer can't notice: it goes on with its jobs, and without their
   * output.
   */
  readonly restart: () => void;
  /** All jobs come to their ends, and all streams to theirs. */
  readonly drain: () => void;
  readonly ids: () => readonly string[];
};

export type JobAction =
  | "assign"
  | "requeue"
  | "ack"
  | "cancel"
  | "complete"
  | "fail"
  | "give up"
  | { readonly print: number };

type Stream = {
  readonly name: string;
  reported?: string;
  before: number;
  at?: number;
  replay: number;
};

type Simulated = {
  job: Job;
  readonly output: TerminalEvent[];
  stream?: Stream | undefined;
  isComplete: boolean;
  isTold: boolean;
  /** The server has no output of it, and gets none any more. */
  isSilent: boolean;
};

/** `textOf`: of the job's n-th terminal event. */
export function simulateServer(windowSize: number, textOf: (index: number) => string): SimulatedServer {
  let now = 1_700_000_000_000;
  const observations: Shown[] = [];
  const jobs = new Map<string, Simulated>();
  const isOver = ({ job: { state } }: Simulated) => state === Job_State.SUCCESS || state === Job_State.ERROR;
  const some = (id: string | undefined) => jobs.get(id ?? "");

  function show(seen: Shown["seen"]): void {
    now += 7;
    observations.push({ at: now, seen });
  }

  function change(of: Simulated, fields: Partial<Job>): void {
    now += 3;
    of.job = { ...of.job, ...fields };
  }

  function take(of: Simulated, step: JobAction): void {
    const { state, assign_time, cancel_time } = of.job;
    const time = timestampOfMs(now + 3);
    const error = { code: 1, message: "canceled", details: [] };
    if (typeof step === "object") {
      if (state !== Job_State.RUNNING || of.isSilent) return;
      for (let n = 0; n < step.print; n++) of.output.push(line(textOf(of.output.length)));
    } else if (step === "assign" && state === Job_State.QUEUED) {
      change(of, { state: Job_State.WAITING, assign_time: assign_time ?? time });
    } else if (step === "requeue" && state === Job_State.WAITING) {
      change(of, { state: Job_State.QUEUED });
    } else if (step === "ack" && state === Job_State.WAITING) {
      change(of, { state: Job_State.RUNNING, ack_time: time });
    } else if (step === "cancel" && !isOver(of)) {
      const isEnd = state === Job_State.QUEUED;
      change(of, { cancel_time: cancel_time ?? time, ...(isEnd && { state: Job_State.ERROR, error }) });
    } else if (step === "complete" && state === Job_State.RUNNING) {
      const result = Job.fromPartial({ result: { run: { run_result: cancel_time === undefined } } }).result;
      change(of, { state: Job_State.SUCCESS, complete_time: time, result });
    } else if (step === "fail" && state === Job_State.RUNNING) {
      change(of, { state: Job_State.ERROR, complete_time: time, error: { code: 2, message: "no", details: [] } });
    } else if (step === "give up" && !isOver(of)) {
      change(of, { state: Job_State.ERROR, cancel_time: cancel_time ?? time, error });
    }
  }

  function pull(of: Simulated, max: number): void {
    if (of.isTold) return;
    // Not in the millisecond of the observation before: a watcher that begins there can't know which was first.
    if (of.stream === undefined) now += 1;
    of.stream ??= { name: ulid(now), before: 0, replay: 0 };
    const { stream } = of;
    const canceling = of.job.cancel_time !== undefined;
    const state = `${of.job.state} ${canceling}`;
    if (stream.reported !== state) {
      const previous = stream.reported === undefined ? Job_State.UNKNOWN : Job_State.QUEUED;
      stream.reported = state;
      report(of, stream, { $case: "state", value: { previous, current: of.job.state, job: of.job, canceling } });
      return;
    }
    if (printMore(of, stream, max) || !isOver(of)) return;
    report(of, stream, { $case: "complete", value: { error: of.job.error, result: of.job.result } });
    end(of, 0);
    of.isTold = of.isComplete;
    of.isComplete = true;
  }

  function printMore(of: Simulated, stream: Stream, max: number): boolean {
    const { output } = of;
    if (of.isSilent) return false;
    const window = output.length - (output.length % windowSize);
    if (stream.at === undefined) {
      if (of.job.ack_time === undefined) return false;
      stream.at = window;
      stream.replay = output.length - window;
    }
    const buffered = stream.replay > 0;
    // A reader that is a window behind goes on with the newest one.
    if (stream.at % windowSize === 0 && !buffered) stream.at = Math.max(stream.at, Math.min(window, output.length));
    if (isOver(of) && !buffered) return false;
    const end = stream.at + Math.min(max, buffered ? stream.replay : windowSize - (stream.at % windowSize));
    const events = output.slice(stream.at, end);
    if (events.length === 0) return false;
    report(of, stream, { $case: "terminal", value: { events, buffered } });
    stream.at += events.length;
    stream.before += events.length;
    stream.replay = Math.max(0, stream.replay - events.length);
    return true;
  }

  function report({ job: { id } }: Simulated, { name, before }: Stream, event: GetJobStreamResponse["event"]): void {
    const bytes = Buffer.from(GetJobStreamResponse.encode({ event }).finish());
    show({ $case: "streamed", value: { job: id, bytes, stream: name, before: BigInt(before) } });
  }

  function end(of: Simulated, code: number): void {
    const { stream } = of;
    of.stream = undefined;
    if (stream === undefined) return;
    show({ $case: "stream_ended", value: { job: of.job.id, stream: stream.name, code, message: "" } });
  }

  function list(): void {
    const value = Buffer.from(ListJobsResponse.encode({ jobs: [...jobs.values()].map((of) => of.job) }).finish());
    show({ $case: "all", value });
  }

  function reconnect(): void {
    for (const of of jobs.values()) {
      end(of, 14);
      // All that is over is read again.
      of.isTold = false;
      of.isComplete = isOver(of);
    }
    show("connected");
    list();
  }

  return {
    observations,
    printed: (id) => jobs.get(id)?.output ?? [],
    ids: () => [...jobs.keys()],
    queue() {
      now += 5;
      const id = ulid(now);
      const queued = job(id, { state: "QUEUED", command: "up", queued: now });
      jobs.set(id, { job: queued, output: [], isComplete: false, isTold: false, isSilent: false });
    },
    step(id, step) {
      const of = some(id);
      if (of) take(of, step);
    },
    pull(id, max) {
      const of = some(id);
      if (of) pull(of, max);
    },
    lose(id) {
      const of = some(id);
      if (of) end(of, 13);
    },
    list,
    reconnect,
    restart() {
      if ([...jobs.values()].some(isOver)) return;
      for (const of of jobs.values()) of.isSilent ||= of.job.state === Job_State.RUNNING;
      reconnect();
    },
    drain() {
      for (const of of jobs.values()) if (!isOver(of)) take(of, "give up");
      list();
      for (const of of jobs.values()) while (!of.isTold) pull(of, 3);
    },
  };
}
