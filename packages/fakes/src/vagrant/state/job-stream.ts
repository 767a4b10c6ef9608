import { type Job, Job_State, type GetJobStreamResponse as Message } from "@tapedeck/proto/vagrant/vagrant";
import type { Jobs } from "./jobs.ts";
import type { OutputReader } from "./output.ts";

/** The parts that a stream may not send at the moment, so that it falls behind. */
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
  /** Sends everything that is due, unless a held gate or a full connection prevents it. */
  readonly go: () => void;
  readonly hasRoom: () => void;
  readonly isFull: () => boolean;
  readonly leave: () => void;
};

const maxEvents = 64;

/**
 * GetJobStream: reads the job's present state whenever something has changed, so states that it could not send in time
 * are never sent, and neither is live output once the job is over. Throws NOT_FOUND if there is no such job.
 */
export function openJobStream(options: JobStreamOptions): JobStream {
  return new WatchedJob(options);
}

class WatchedJob implements JobStream {
  readonly #options: JobStreamOptions;
  readonly #unwatch: () => void;
  #isOpen = true;
  #isFull = false;
  #last: { readonly state: Job_State; readonly canceling: boolean } | undefined;
  #reader: OutputReader | undefined;

  constructor(options: JobStreamOptions) {
    const { jobs, id } = options;
    jobs.read(id);
    this.#options = options;
    this.#unwatch = jobs.watch(id, this.go);
    this.#send({ $case: "open", value: {} });
  }

  readonly go = (): void => {
    try {
      while (this.#isOpen && !this.#isFull && this.#sendNext());
    } catch (cause) {
      this.leave();
      this.#options.broken(cause);
    }
  };

  readonly hasRoom = (): void => {
    this.#isFull = false;
    this.go();
  };

  readonly isFull = () => this.#isFull;

  readonly leave = (): void => {
    this.#isOpen = false;
    this.#unwatch();
  };

  #send(event: NonNullable<Message["event"]>): void {
    this.#isFull = !this.#options.write({ event });
  }

  /** False if nothing is due. */
  #sendNext(): boolean {
    const { jobs, id } = this.#options;
    const job = jobs.read(id);
    return this.#sendState(job) || this.#sendOutput(job) || this.#complete(job);
  }

  #sendState(job: Job): boolean {
    const last = this.#last;
    const now = { state: job.state, canceling: job.cancel_time !== undefined };
    const isTold = last?.state === now.state && last.canceling === now.canceling;
    if (this.#options.held().states || isTold) return false;
    const previous = last?.state ?? Job_State.UNKNOWN;
    this.#last = now;
    this.#send({ $case: "state", value: { previous, current: now.state, job, canceling: now.canceling } });
    return true;
  }

  #sendOutput(job: Job): boolean {
    const { jobs, id, held } = this.#options;
    if (held().output) return false;
    this.#reader ??= jobs.output(id)?.read();
    const buffered = (this.#reader?.buffered() ?? 0) > 0;
    if (isOver(job) && !buffered) return false;
    const events = this.#reader?.next(maxEvents) ?? [];
    if (events.length === 0) return false;
    this.#send({ $case: "terminal", value: { events, buffered } });
    return true;
  }

  #complete(job: Job): boolean {
    const isTold = this.#last !== undefined && this.#last.state === job.state && !this.#options.held().output;
    if (!isTold || !isOver(job)) return false;
    this.leave();
    this.#send({ $case: "complete", value: { error: job.error, result: job.result } });
    this.#options.end();
    return false;
  }
}

function isOver({ state }: Job): boolean {
  return state === Job_State.SUCCESS || state === Job_State.ERROR;
}
