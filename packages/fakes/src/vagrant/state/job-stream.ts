import { type Job, Job_State, type GetJobStreamResponse as Message } from "@tapedeck/proto/vagrant/vagrant";
import type { Jobs } from "./jobs.ts";
import type { OutputReader } from "./output.ts";

/** What a stream may not say at the moment, so that it falls behind. */
export type StreamGates = { readonly states: boolean; readonly output: boolean };

export type JobStreamOptions = {
  readonly jobs: Jobs;
  readonly id: string;
  readonly held: () => StreamGates;
  /** False: not another one for now; `go` is called when there is room. */
  readonly write: (message: Message) => boolean;
  readonly end: () => void;
  /** The job can't be read any more. */
  readonly broken: (cause: unknown) => void;
};

export type JobStream = {
  /** Says what there is to say, unless a held gate or a full connection keeps it back. */
  readonly go: () => void;
  readonly hasRoom: () => void;
  readonly isFull: () => boolean;
  readonly leave: () => void;
};

const mostEvents = 64;

/**
 * GetJobStream: looks at the job as it is whenever something has changed, so states that it could not tell in time are
 * never told, and neither is live output once the job is over. Throws NOT_FOUND if there is no such job.
 */
export function openJobStream({ jobs, id, held, write, end, broken }: JobStreamOptions): JobStream {
  jobs.read(id);
  let isOpen = true;
  let isFull = false;
  let last: { readonly state: Job_State; readonly canceling: boolean } | undefined;
  let reader: OutputReader | undefined;

  const unwatch = jobs.watch(id, go);
  say({ $case: "open", value: {} });

  function say(event: NonNullable<Message["event"]>): void {
    isFull = !write({ event });
  }

  function leave(): void {
    isOpen = false;
    unwatch();
  }

  function go(): void {
    try {
      while (isOpen && !isFull && sayNext());
    } catch (cause) {
      leave();
      broken(cause);
    }
  }

  /** False: there is nothing to say now. */
  function sayNext(): boolean {
    const job = jobs.read(id);
    return sayState(job) || sayOutput(job) || complete(job);
  }

  function sayState(job: Job): boolean {
    const now = { state: job.state, canceling: job.cancel_time !== undefined };
    if (held().states || (last?.state === now.state && last.canceling === now.canceling)) return false;
    const previous = last?.state ?? Job_State.UNKNOWN;
    last = now;
    say({ $case: "state", value: { previous, current: now.state, job, canceling: now.canceling } });
    return true;
  }

  function sayOutput(job: Job): boolean {
    if (held().output) return false;
    reader ??= jobs.output(id)?.read();
    const buffered = (reader?.buffered() ?? 0) > 0;
    if (isOver(job) && !buffered) return false;
    const events = reader?.next(mostEvents) ?? [];
    if (events.length === 0) return false;
    say({ $case: "terminal", value: { events, buffered } });
    return true;
  }

  function complete(job: Job): boolean {
    const isTold = last !== undefined && last.state === job.state && !held().output;
    if (!isTold || !isOver(job)) return false;
    leave();
    say({ $case: "complete", value: { error: job.error, result: job.result } });
    end();
    return false;
  }

  return {
    go,
    hasRoom() {
      isFull = false;
      go();
    },
    isFull: () => isFull,
    leave,
  };
}

function isOver({ state }: Job): boolean {
  return state === Job_State.SUCCESS || state === Job_State.ERROR;
}
