import { delay } from "@tapedeck/shared/sync/delay";
import type { RecordedUpstream } from "./recording.ts";
import type { ServerDatabase } from "./state/database.ts";
import type { JobHooks } from "./state/jobs.ts";
import type { Stamps } from "./state/stamps.ts";
import { Refusal } from "./status.ts";
import { type CallStep, type RecordedStep, type StepContent, stepsOf, subjectOf } from "./steps.ts";

/** A run that is done again, step by step. Nothing happens but by one of these functions. */
export type Playback = {
  readonly steps: readonly RecordedStep[];
  /** How many of them are done. */
  readonly done: () => number;
  /** Runs the next one; undefined if all are done. Streams have been notified when this returns. */
  readonly next: () => RecordedStep | undefined;
  /** The answer of the call of row `n`; undefined if it was refused or is not done. */
  readonly answer: (n: number) => Buffer | undefined;
  /** Does all steps of rows up to this one. */
  readonly to: (n: number) => void;
  readonly all: () => void;
  /** `run` waits before the first step of row `n` or later, until the function returned is called. */
  readonly hold: (n: number) => () => void;
  /** Does what is left. `speed`: times as fast as recorded, or without pauses. Ends early with the signal. */
  readonly run: (options: { readonly speed: number | "max"; readonly signal?: AbortSignal }) => Promise<void>;
};

/** The parts of a server that a run needs. */
export type PlayedServer = {
  readonly database: ServerDatabase;
  readonly stamps: Stamps;
  readonly jobs: JobHooks;
  /** Throws a Refusal. */
  readonly call: (rpc: string, request: Buffer) => Buffer;
};

/** With the recorded ids and times, so that the answers are the recorded ones. */
export function playSample(server: PlayedServer, recording: RecordedUpstream): Playback {
  return play(stepsOf(recording), (step) => {
    if (step.kind === "call") return server.stamps.lend(step.lent, () => callAsRecorded(server, step));
    return server.stamps.lend({ times: "at" in step ? [step.at] : [] }, () => doHere(server, step));
  });
}

function callAsRecorded({ call }: PlayedServer, { rpc, request, isRefused }: CallStep): Buffer | undefined {
  try {
    return call(rpc, request);
  } catch (cause) {
    if (!isRefused || !(cause instanceof Refusal)) throw cause;
    return undefined;
  }
}

/**
 * Plays the steps as if they happened now, with new ids. `names` maps recorded ids to new ones, and learns the others.
 * Records that are there already, found or refused, are not made again.
 */
export function playAsNow(server: PlayedServer, steps: readonly RecordedStep[], names: Map<string, string>): Playback {
  return play(steps, (step) => {
    if (step.kind !== "call") return doHere(server, renamed(step, names));
    const { rpc, about } = step;
    const isThere = about !== undefined && names.has(about) && (rpc === "UpsertBasis" || rpc === "UpsertProject");
    if (isThere) return undefined;
    try {
      const answer = server.call(rpc, renameIn(step.request, names));
      const now = subjectOf(rpc, answer);
      if (about !== undefined && now !== undefined) names.set(about, now);
      return answer;
    } catch (cause) {
      if (!(cause instanceof Refusal)) throw cause;
      return undefined;
    }
  });
}

/** All ids have the same length, so they can change inside of a message. */
function renameIn(bytes: Buffer, names: ReadonlyMap<string, string>): Buffer {
  let text = bytes.toString("latin1");
  for (const [recorded, now] of names) text = text.replaceAll(recorded, now);
  return Buffer.from(text, "latin1");
}

type HookStep = Exclude<StepContent, CallStep>;

function renamed(step: HookStep, names: ReadonlyMap<string, string>): HookStep {
  const now = (id: string) => names.get(id) ?? id;
  if (step.kind === "runner") return { ...step, runner: { ...step.runner, id: now(step.runner.id) } };
  return { ...step, job: now(step.job) };
}

function doHere({ database, jobs }: PlayedServer, step: HookStep): undefined {
  switch (step.kind) {
    case "runner":
      database.runners.set(step.runner.id, step.runner);
      break;
    case "assign":
    case "ack":
      jobs[step.kind](step.job);
      break;
    case "write":
      jobs.write(step.job, step.events);
      break;
    case "complete":
      jobs.complete(step.job, step.result);
  }
}

function play(steps: readonly RecordedStep[], perform: (step: RecordedStep) => Buffer | undefined): Playback {
  let done = 0;
  const answers = new Map<number, Buffer>();
  const gates = new Map<number, PromiseWithResolvers<void>>();

  function next(): RecordedStep | undefined {
    const step = steps[done];
    if (step === undefined) return undefined;
    const answer = perform(step);
    if (answer !== undefined) answers.set(step.n, answer);
    done++;
    return step;
  }

  function to(n: number): void {
    for (let step = steps[done]; step !== undefined && step.n <= n; step = steps[done]) next();
  }

  async function unheld(n: number, signal: AbortSignal | undefined): Promise<void> {
    const aborted = Promise.withResolvers<void>();
    const abort = () => aborted.resolve();
    signal?.addEventListener("abort", abort);
    for (;;) {
      const gate = [...gates].find(([from]) => from <= n)?.[1];
      if (gate === undefined || signal?.aborted) break;
      await Promise.race([gate.promise, aborted.promise]);
    }
    signal?.removeEventListener("abort", abort);
  }

  return {
    steps,
    done: () => done,
    next,
    answer: (n) => answers.get(n),
    to,
    all: () => to(Number.POSITIVE_INFINITY),
    hold(n) {
      const gate = Promise.withResolvers<void>();
      gates.set(n, gate);
      return () => {
        if (gates.get(n) === gate) gates.delete(n);
        gate.resolve();
      };
    },
    async run({ speed, signal }) {
      for (let last = steps[done]?.atMs ?? 0; ; ) {
        const step = steps[done];
        if (step === undefined) return;
        // Even without pauses others get a turn between two steps.
        await delay(speed === "max" ? 0 : (step.atMs - last) / speed, signal);
        await unheld(step.n, signal);
        if (signal?.aborted) return;
        last = step.atMs;
        next();
      }
    },
  };
}
