import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { ControlAnswer, ControlCall, ControlReply, ControlRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { maxEffectMs, observeMethod } from "@tapedeck/shared/control-effects";
import { controlTimeouts } from "@tapedeck/shared/control-timeouts";
import { delay } from "@tapedeck/shared/sync/delay";
import { ulid } from "ulid";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { controlAnswered, controlRequested } from "../own-facts/control-facts.ts";
import type { Injections } from "./injections.ts";
import type { SessionRecorder } from "./session-recorder.ts";

const defaultLoopStartMs = 1_000;
/** A loop that takes longer delays no step. */
const loopEndMs = 3_600_000;

/** One event holds the request and what is forwarded. Skaffold takes calls up to 4 MiB and needs only a few bytes. */
const maxCallBytes = 7 * 1024 * 1024;

const unavailable = 14;
const exhausted = 8;
const noBytes = Buffer.alloc(0);
const tooLate = "the call was not made, because earlier calls or the log took too long: try again";

export type ControlOptions = {
  readonly recorder: Pick<SessionRecorder, "recordFact" | "connected" | "listeners"> & {
    readonly injections: Pick<Injections, "expect" | "forget">;
  };
  readonly normalizer: Pick<Normalizer, "controlSteps">;
  /** Sends a request to the tap. Answers with code 14 when the tap or the upstream is away. */
  readonly ask: (request: ControlRequest) => Promise<ControlAnswer>;
  /** Whether everything that the tap has pushed up to this index is in the log within this time. */
  readonly isCommitted?: (index: bigint, withinMs: number) => Promise<boolean>;
  readonly signal: AbortSignal;
  readonly onError?: (error: unknown) => void;
  /** How long a step waits for the loop that the step before it should start. Default 1 s. */
  readonly loopStartMs?: number | undefined;
};

type ControlStep = ReturnType<Normalizer["controlSteps"]>[number];

/**
 * Makes the control calls of one source, one after the other. Each call is recorded, made in the steps that the upstream
 * can take, and answered with the answer of the first step. Nothing is queued for an upstream that is away, and nothing
 * is sent that had to wait so long that its caller may be gone when the answer comes.
 */
export class ControlCalls {
  readonly #options: ControlOptions;
  /** Settles when the last call in the queue is over. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(options: ControlOptions) {
    this.#options = options;
  }

  async make(call: ControlCall): Promise<ControlReply> {
    const { recorder, normalizer, onError } = this.#options;
    const sendBefore = performance.now() + controlTimeouts.turnMs;
    if (!recorder.connected) return notConnected;
    if (call.request.byteLength + call.forwarded_request.byteLength > maxCallBytes) {
      const message = `a call of ${call.request.byteLength} bytes: the log takes ${maxCallBytes / 2}`;
      return { code: exhausted, message, response: noBytes, reason: "limit_exceeded" };
    }
    if (call.forwarded_method === observeMethod) return this.#observe(call);
    const steps = normalizer.controlSteps(call.forwarded_method, call.forwarded_request);
    const [first = { method: call.forwarded_method, request: call.forwarded_request }, ...later] = steps;
    const id = ulid();
    const [answer, loop] = await this.#enqueue(async () => {
      // The log has the request before the call is made, so its effects on the upstream never appear without their cause.
      await recorder.recordFact(controlRequested(id, call));
      const loop = this.#watchLoop();
      return [await this.#makeStep(id, call, first, sendBefore), loop] as const;
    });
    if (answer.code === 0 && later.length > 0) this.#makeLaterSteps(call, later, loop).catch(onError);
    else loop.stop();
    if (answer.code === unavailable) return upstreamAway(answer.message);
    return this.#reply(answer);
  }

  /** Nothing is changed, so nothing is recorded, and other calls are not waited for. */
  async #observe({ forwarded_method, forwarded_request }: ControlCall): Promise<ControlReply> {
    const { ask } = this.#options;
    const answer = await ask({ call: ulid(), method: forwarded_method, request: asBuffer(forwarded_request) });
    return answer.code === unavailable ? upstreamAway(answer.message) : this.#reply(answer);
  }

  /** Waits until what the call has changed is in the log. */
  async #reply({ code, message, response, effect_index, effect_ms = 0 }: ControlAnswer): Promise<ControlReply> {
    const reply = { code, message, response, reason: "" };
    const { isCommitted } = this.#options;
    if (effect_index === undefined || isCommitted === undefined) return reply;
    const startedAt = performance.now();
    const isRecorded = await isCommitted(effect_index, maxEffectMs - effect_ms);
    return isRecorded ? { ...reply, effect_ms: effect_ms + Math.round(performance.now() - startedAt) } : reply;
  }

  /** Only one call at a time is on its way to the upstream. */
  #enqueue<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(act);
    this.#queue = turn.catch(() => {});
    return turn;
  }

  async #makeStep(
    id: string,
    call: ControlCall,
    { method, request }: ControlStep,
    sendBefore = Number.POSITIVE_INFINITY,
  ): Promise<ControlAnswer> {
    const answer =
      performance.now() > sendBefore
        ? { call: id, code: unavailable, message: tooLate, response: noBytes }
        : await this.#send({ call: id, method, request: asBuffer(request) });
    const { code, message } = answer;
    await this.#options.recorder.recordFact(controlAnswered(id, call, { method, request, code, message }));
    return answer;
  }

  async #send(request: ControlRequest): Promise<ControlAnswer> {
    const { recorder, ask } = this.#options;
    recorder.injections.expect(request.call, request.method, request.request);
    const answer = await ask(request);
    if (answer.code !== 0) recorder.injections.forget(request.call);
    return answer;
  }

  /** Makes each step when the loop of the step before it has ended, or when there was none. */
  async #makeLaterSteps(call: ControlCall, steps: readonly ControlStep[], firstLoop: LoopWatch): Promise<void> {
    const { recorder, signal } = this.#options;
    let loop = firstLoop;
    for (const step of steps) {
      await loop.ended();
      loop = this.#watchLoop();
      if (signal.aborted) break;
      const { code } = await this.#enqueue(async () => {
        // Each step is a recorded call of its own, so that its position is known as exactly as that of the first.
        const id = ulid();
        const forwarded = { forwarded_method: step.method, forwarded_request: asBuffer(step.request) };
        await recorder.recordFact(controlRequested(id, { ...call, ...forwarded }));
        return this.#makeStep(id, call, step);
      });
      if (code !== 0) break;
    }
    loop.stop();
  }

  #watchLoop(): LoopWatch {
    const { recorder, signal, loopStartMs = defaultLoopStartMs } = this.#options;
    return watchLoop(recorder.listeners, loopStartMs, signal);
  }
}

/** The reply where a call can't reach the upstream. */
export function upstreamAway(message: string): ControlReply {
  return { code: unavailable, message, response: noBytes, reason: "upstream_away" };
}

export const notConnected = upstreamAway("the upstream is not connected");

type LoopWatch = {
  /** Resolves when a loop that started since has ended, or when none has started in time. */
  ended(): Promise<void>;
  stop(): void;
};

function watchLoop(listeners: Set<(event: Event) => void>, loopStartMs: number, signal: AbortSignal): LoopWatch {
  const started = new AbortController();
  const over = new AbortController();
  const listen = ({ kind }: Event) => {
    if (kind === "loop.started") started.abort();
    else if (started.signal.aborted && (kind === "loop.succeeded" || kind === "loop.failed")) over.abort();
  };
  listeners.add(listen);
  const stop = () => void listeners.delete(listen);
  return {
    async ended() {
      await delay(loopStartMs, AbortSignal.any([started.signal, signal]));
      if (started.signal.aborted) await delay(loopEndMs, AbortSignal.any([over.signal, signal]));
      stop();
    },
    stop,
  };
}
