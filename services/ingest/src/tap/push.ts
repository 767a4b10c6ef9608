import { setTimeout } from "node:timers/promises";
import { status } from "@grpc/grpc-js";
import type {
  ControlAnswer,
  ControlRequest,
  PushRequest,
  PushResponse,
  Welcome,
} from "@tapedeck/proto/tapedeck/v1/recorder";
import pRetry, { AbortError } from "p-retry";
import type { Link } from "./link.ts";
import { type Mailbox, mailbox } from "./mailbox.ts";
import { inPieces } from "./pieces.ts";
import type { Spill } from "./spill.ts";
import type { TapIdentity } from "./spill-folder.ts";

export type PushOptions = {
  readonly link: Link;
  readonly spill: Spill;
  /** Makes a control call on the upstream; answers with code 14 when there is none. */
  readonly control: (request: ControlRequest) => Promise<ControlAnswer>;
  /** Stops at once; what is not committed stays in the spill. */
  readonly signal: AbortSignal;
  readonly log: PushLog;
  /** Another tap records this source: the name to go on with, or undefined to stop pushing. */
  readonly sourceTaken?: (message: string) => TapIdentity | undefined;
  readonly welcomed?: (welcome: Welcome) => void;
};

/** What pino offers. */
export type PushLog = Readonly<Record<"info" | "warn", (fields: object, message: string) => void>>;

export type RunningPush = {
  /** Resolves when pushing has stopped, for whatever reason; never rejects. */
  readonly done: Promise<void>;
  /** Stops when everything is committed, at the latest after so many ms. True if everything is. */
  readonly finish: (boundMs: number) => Promise<boolean>;
};

const backoff = { minTimeout: 100, maxTimeout: 2_000, randomize: true, retries: Number.POSITIVE_INFINITY };

/** A gateway takes messages of 4 MiB. */
const mostAnswerBytes = 4_000_000;

/** Pushes what a spill holds and gets to a recorder, from the first item that is not committed, over and over. */
export function pushItems(options: PushOptions): RunningPush {
  const { spill, signal, log } = options;
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);

  async function run(): Promise<void> {
    while (!stopped.aborted) {
      await pRetry(() => connect(options, stopped), {
        ...backoff,
        signal: stopped,
        onFailedAttempt: ({ error, attemptNumber }) => {
          if (stopped.aborted) return;
          log.warn({ err: error, attempt: attemptNumber, tap: spill.hello().tap }, "the recorder is away");
        },
      });
      // Lost after a welcome: not at once again, should that be how it always ends.
      await setTimeout(backoff.minTimeout, undefined, { signal: stopped });
    }
  }

  const done = run().catch((err: unknown) => {
    if (!stopped.aborted) log.warn({ err, tap: spill.hello().tap }, "pushing has stopped");
  });
  return {
    done,
    finish: async (boundMs) => {
      const bound = AbortSignal.timeout(boundMs);
      const over = new AbortController();
      void done.then(() => over.abort());
      await spill.drained(AbortSignal.any([bound, over.signal]));
      stop.abort();
      await done;
      const { committed, nextIndex } = spill.state();
      return committed >= nextIndex - 1n;
    },
  };
}

/** One connection. Resolves when it ends after a welcome, rejects when it did not come to one. */
async function connect({ link, spill, control, log, ...options }: PushOptions, stopped: AbortSignal): Promise<void> {
  const over = new AbortController();
  const signal = AbortSignal.any([stopped, over.signal]);
  const box = mailbox<PushRequest>();
  signal.addEventListener("abort", box.close);
  void box.put({
    body: { $case: "hello", value: { settings: {}, ...spill.hello(), first_index: spill.state().firstIndex } },
  });
  let welcome: Welcome | undefined;

  async function answer(request: ControlRequest): Promise<void> {
    const value = await control(request).catch((cause: unknown) => {
      log.warn({ err: cause, tap: spill.hello().tap }, "a control call failed");
      return { call: request.call, code: status.UNAVAILABLE, message: "the tap failed", response: Buffer.alloc(0) };
    });
    await box.put({ body: { $case: "control_answer", value: fitting(value) } });
  }

  /** The disk, or too many open files. Whoever taps an upstream must not end for it: tried again with the next connection. */
  async function unreadable(err: unknown): Promise<void> {
    log.warn({ err, tap: spill.hello().tap }, "the spill can't be read");
    await setTimeout(backoff.maxTimeout, undefined, { signal }).catch(() => {});
    over.abort();
  }

  function take({ body }: PushResponse): void {
    if (body?.$case === "welcome") {
      welcome = body.value;
      spill.commit(welcome.committed);
      log.info({ source: welcome.source, committed: welcome.committed, tap: spill.hello().tap }, "recorded");
      options.welcomed?.(welcome);
      sendItems(spill, welcome.committed + 1n, box, signal).catch(unreadable);
    } else if (body?.$case === "committed") {
      spill.commit(body.value.index);
    } else if (body?.$case === "control") {
      void answer(body.value);
    }
  }

  try {
    for await (const response of link(box, signal)) take(response);
    if (welcome === undefined) throw new Error("the recorder hung up without a word");
  } catch (cause) {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    if (codeOf(error) === status.ALREADY_EXISTS) {
      const name = options.sourceTaken?.(error.message);
      if (name === undefined) throw new AbortError(error);
      spill.rename(name);
    } else if (welcome === undefined) {
      // Whatever it is: p-retry would give up on a TypeError.
      throw new Error(error.message, { cause: error });
    } else if (!signal.aborted) {
      log.warn({ err: error, tap: spill.hello().tap }, "lost the recorder");
    }
  } finally {
    over.abort();
  }
}

async function sendItems(spill: Spill, from: bigint, box: Mailbox<PushRequest>, signal: AbortSignal): Promise<void> {
  for await (const item of spill.read(from, signal)) {
    for (const piece of inPieces(item)) await box.put({ body: { $case: "item", value: piece } });
  }
}

/** A message that the other side does not take would end the stream. */
function fitting(answer: ControlAnswer): ControlAnswer {
  if (answer.response.length <= mostAnswerBytes) return answer;
  const message = `the upstream's answer of ${answer.response.length} bytes is too large to be passed on`;
  return { call: answer.call, code: status.RESOURCE_EXHAUSTED, message, response: Buffer.alloc(0) };
}

function codeOf(error: Error): unknown {
  return (error as { readonly code?: unknown }).code;
}
