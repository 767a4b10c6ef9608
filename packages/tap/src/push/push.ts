import { status } from "@grpc/grpc-js";
import type {
  ControlAnswer,
  ControlRequest,
  Item,
  PushRequest,
  PushResponse,
  Welcome,
} from "@tapedeck/proto/tapedeck/v1/recorder";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import type { Spill } from "../spill/spill.ts";
import type { TapIdentity } from "../spill/spill-folder.ts";
import type { RunningTap } from "../tap.ts";
import type { RecorderLink } from "./link.ts";
import { Mailbox } from "./mailbox.ts";
import { inPieces } from "./pieces.ts";
import { RelayedStreams } from "./relayed-streams.ts";

/** What is pushed, to which recorder, and what is called meanwhile. */
export type PushOptions = {
  readonly link: RecorderLink;
  readonly spill: Spill;
  /** Makes a control call on the upstream; answers with code 14 without a connection. */
  readonly control: (request: ControlRequest) => Promise<ControlAnswer>;
  /** Opens a stream to the upstream, where it has streams that clients send on. */
  readonly stream?: RunningTap["stream"] | undefined;
  /** Stops at once. Uncommitted items stay in the spill. */
  readonly signal: AbortSignal;
  readonly log: PushLog;
  /** Sends the spill's waiting items in one message: for an import, and for a recorder in this process. */
  readonly together?: boolean;
  /** Another tap records this source. Gives the name to continue with, or undefined to stop pushing. */
  readonly sourceTaken?: (message: string) => TapIdentity | undefined;
  readonly welcomed?: (welcome: Welcome) => void;
  /** Called with the recorded session whenever it becomes known or changes. */
  readonly sessionFound?: (session: string) => void;
  /** Called with the reason when a connection fails or ends. */
  readonly away?: (error: unknown) => void;
};

/** The part of pino's logger that is needed. */
export type PushLog = Readonly<Record<"info" | "warn", (fields: object, message: string) => void>>;

/** A push that runs until it is stopped or refused. */
export type RunningPush = {
  /** Resolves when pushing has stopped, for whatever reason; never rejects. */
  readonly done: Promise<void>;
  /** Stops when everything is committed, or after `boundMs`. True if everything is committed. */
  readonly finish: (boundMs: number) => Promise<boolean>;
  /** Like `finish`, but waits up to `stepMs` for each further commit. */
  readonly finishWhileMoving: (stepMs: number) => Promise<boolean>;
};

/** Between attempts; longer after a recorder refused the push. */
const awayMs = { first: 100, max: 2_000 };
const refusedMs = { first: 1_000, max: 30_000 };

/** A connection that lives this long was a good one. */
const steadyMs = 5_000;

/** Answers that waiting does not change. */
const refusals: ReadonlySet<unknown> = new Set([
  ...[status.INVALID_ARGUMENT, status.PERMISSION_DENIED, status.UNAUTHENTICATED, status.FAILED_PRECONDITION],
  ...[status.UNIMPLEMENTED, status.RESOURCE_EXHAUSTED, status.NOT_FOUND],
]);

/** A gateway takes messages of up to 4 MiB. */
const maxAnswerBytes = 4_000_000;

/** Pushes a spill's items to a recorder, present and future ones, and reconnects from the first uncommitted item. */
export function pushItems(options: PushOptions): RunningPush {
  const { spill, signal, log } = options;
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);

  async function run(): Promise<void> {
    const afterAway = backoff(awayMs.first, awayMs.max);
    const afterRefusal = backoff(refusedMs.first, refusedMs.max);
    for (let attempt = 1; !stopped.aborted; attempt++) {
      const { committed } = spill.state();
      const since = performance.now();
      const error = await connect(options, stopped);
      if (stopped.aborted) return;
      if (spill.state().committed > committed || performance.now() - since >= steadyMs) {
        afterAway.reset();
        afterRefusal.reset();
        attempt = 0;
      }
      const isRefused = refusals.has(codeOf(error));
      // A recorder that refuses a name is not away, and takes the next name.
      if (error !== renamed) {
        if (error !== undefined)
          log.warn({ err: error, attempt, tap: spill.hello().tap }, "the recorder is unavailable");
        options.away?.(error);
      }
      await delay(isRefused ? afterRefusal.next() : afterAway.next(), stopped);
    }
  }

  const done = run().catch((err: unknown) => {
    if (!stopped.aborted) log.warn({ err, tap: spill.hello().tap }, "pushing has stopped");
  });
  const over = new AbortController();
  void done.then(() => over.abort());

  /** Waits up to `ms` until everything is committed. */
  async function drained(ms: number): Promise<boolean> {
    await spill.drained(AbortSignal.any([timeoutSignal(ms), over.signal]));
    const { committed, nextIndex } = spill.state();
    return committed >= nextIndex - 1n;
  }

  async function stopAs(isAll: boolean): Promise<boolean> {
    stop.abort();
    await done;
    return isAll;
  }

  return {
    done,
    finish: async (boundMs) => stopAs(await drained(boundMs)),
    finishWhileMoving: async (stepMs) => {
      for (let before = -1n; !over.signal.aborted && spill.state().committed > before; ) {
        before = spill.state().committed;
        if (await drained(stepMs)) return stopAs(true);
      }
      return stopAs(false);
    },
  };
}

/** The connection ended because another tap records the source. The next connection uses another name. */
const renamed = Symbol("renamed");

/** Makes one connection. Resolves with the reason why it ended or failed; undefined for an ordinary end. */
async function connect({ link, spill, control, log, ...options }: PushOptions, stopped: AbortSignal): Promise<unknown> {
  const over = new AbortController();
  const signal = AbortSignal.any([stopped, over.signal]);
  const box = new Mailbox<PushRequest>();
  signal.addEventListener("abort", () => box.close());
  void box.put({
    body: { $case: "hello", value: { settings: {}, ...spill.hello(), first_index: spill.state().firstIndex } },
  });
  let welcome: Welcome | undefined;
  const send = options.together === true ? sendTogether : sendItems;

  const streams = new RelayedStreams({
    open: (method) => options.stream?.(method),
    send: (value) => box.put({ body: { $case: "stream", value } }),
    lastIndex: () => spill.state().nextIndex - 1n,
  });

  async function answer(request: ControlRequest): Promise<void> {
    const value: ControlAnswer = await control(request).catch((cause: unknown) => {
      log.warn({ err: cause, tap: spill.hello().tap }, "a control call failed");
      return { call: request.call, code: status.UNAVAILABLE, message: "the tap failed", response: Buffer.alloc(0) };
    });
    const { effect_ms } = value;
    const effect_index = effect_ms === undefined ? undefined : spill.state().nextIndex - 1n;
    await box.put({ body: { $case: "control_answer", value: { ...fitting(value), effect_ms, effect_index } } });
  }

  /** Reading the spill failed (the disk, or too many open files). The tap must not end for that: the next connection tries again. */
  async function unreadable(err: unknown): Promise<void> {
    log.warn({ err, tap: spill.hello().tap }, "the spill can't be read");
    await delay(awayMs.max, signal);
    over.abort();
  }

  function take({ body }: PushResponse): void {
    if (body?.$case === "welcome") {
      welcome = body.value;
      spill.commit(welcome.committed);
      log.info({ source: welcome.source, committed: welcome.committed, tap: spill.hello().tap }, "recorded");
      options.welcomed?.(welcome);
      send(spill, welcome.committed + 1n, box, signal).catch(unreadable);
    } else if (body?.$case === "committed") {
      spill.commit(body.value.index);
    } else if (body?.$case === "session_found") {
      options.sessionFound?.(body.value.session);
    } else if (body?.$case === "control") {
      void answer(body.value);
    } else if (body?.$case === "stream") {
      streams.take(body.value);
    }
  }

  try {
    for await (const response of link(box, signal)) take(response);
    return welcome === undefined ? new Error("the recorder closed the connection before it answered") : undefined;
  } catch (error) {
    if (codeOf(error) !== status.ALREADY_EXISTS) return error;
    const name = options.sourceTaken?.((error as Error).message);
    if (name === undefined) throw error;
    spill.rename(name);
    return renamed;
  } finally {
    over.abort();
    streams.close();
  }
}

async function sendItems(spill: Spill, from: bigint, box: Mailbox<PushRequest>, signal: AbortSignal): Promise<void> {
  for await (const item of spill.read(from, signal)) {
    for (const piece of inPieces(item))
      await box.put({ body: { $case: "item", value: piece }, sent_at: timestampNow() });
  }
}

async function sendTogether(spill: Spill, from: bigint, box: Mailbox<PushRequest>, signal: AbortSignal): Promise<void> {
  for await (const read of spill.readTogether(from, signal)) {
    for (const items of messagesOf(read))
      await box.put({ body: { $case: "items", value: { items } }, sent_at: timestampNow() });
  }
}

/** The spill's items fit into one message, except for a large item: its pieces are separate messages. */
function messagesOf(read: readonly Item[]): readonly Item[][] {
  return read.length === 1 ? read.flatMap((item) => [...inPieces(item)].map((piece) => [piece])) : [[...read]];
}

/** Replaces an answer that is too large, because a message over the limit would end the stream. */
function fitting(answer: ControlAnswer): ControlAnswer {
  if (answer.response.length <= maxAnswerBytes) return answer;
  const message = `the upstream's answer of ${answer.response.length} bytes is too large to be passed on`;
  return { call: answer.call, code: status.RESOURCE_EXHAUSTED, message, response: Buffer.alloc(0) };
}

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown } | undefined)?.code;
}
