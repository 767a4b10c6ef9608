import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { ControlAnswer, ControlCall, ControlReply, ControlRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { controlPatience } from "@tapedeck/shared/control-patience";
import { pause } from "@tapedeck/shared/sync/delay";
import { ulid } from "ulid";
import type { Normalizer } from "./normalize/normalizer.ts";
import { bufferOf } from "./record/frames/original.ts";
import { controlAnswered, controlRequested } from "./record/own-facts/control-facts.ts";
import type { Recording } from "./record/session/session-recorder.ts";

/** How long a step waits for the loop that it was to start. */
const loopStartMs = 1_000;
/** A loop that takes longer keeps no step waiting. */
const loopEndMs = 3_600_000;

/** What is asked and what is passed on stand in one event. Skaffold takes calls up to 4 MiB, and needs a few bytes. */
const mostBytes = 7 * 1024 * 1024;

const unavailable = 14;
const exhausted = 8;
const none = Buffer.alloc(0);
const tooLate = "the call was not made, because its turn came too late: others, or the log, took too long; try again";

export type ControlOptions = {
  readonly recording: Pick<Recording, "say" | "injections" | "connected" | "listeners">;
  readonly reading: Normalizer;
  /** Sends a request to the tap; code 14 when tap or upstream are away. */
  readonly ask: (request: ControlRequest) => Promise<ControlAnswer>;
  readonly signal: AbortSignal;
  readonly onProblem?: (error: unknown) => void;
};

export type Control = (call: ControlCall) => Promise<ControlReply>;

/**
 * Control calls for one source, one after the other: each is recorded, made in the steps that the upstream can take,
 * and answered with the answer of the first. Nothing is queued for an upstream that is away, and nothing is sent that
 * had to wait so long that its caller may be gone when the answer comes.
 */
export function controlling({ recording, reading, ask, signal, onProblem }: ControlOptions): Control {
  let line: Promise<unknown> = Promise.resolve();

  /** One call at a time is on its way to the upstream. */
  function inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = line.then(act);
    line = turn.catch(() => {});
    return turn;
  }

  async function take(
    id: string,
    call: ControlCall,
    { method, request }: Step,
    sendBefore = Number.POSITIVE_INFINITY,
  ): Promise<ControlAnswer> {
    const answer =
      performance.now() > sendBefore
        ? { call: id, code: unavailable, message: tooLate, response: none }
        : await send({ call: id, method, request: bufferOf(request) });
    const { code, message } = answer;
    await recording.say(controlAnswered(id, call, { method, request, code, message }));
    return answer;
  }

  async function send(request: ControlRequest): Promise<ControlAnswer> {
    recording.injections.expect(request.call, request.method, request.request);
    const answer = await ask(request);
    if (answer.code !== 0) recording.injections.forget(request.call);
    return answer;
  }

  /** Each when the loop of the one before has ended, or when there was none. */
  async function takeLater(call: ControlCall, steps: readonly Step[], loop: LoopWatch): Promise<void> {
    let before = loop;
    for (const step of steps) {
      await before.ended();
      before = watchLoop(recording.listeners, signal);
      if (signal.aborted) break;
      const { code } = await inTurn(async () => {
        // A call of its own in the record, so that its place is known as exactly as that of the first.
        const id = ulid();
        const forwarded = { forwarded_method: step.method, forwarded_request: bufferOf(step.request) };
        await recording.say(controlRequested(id, { ...call, ...forwarded }));
        return take(id, call, step);
      });
      if (code !== 0) break;
    }
    before.leave();
  }

  return async (call) => {
    const sendBefore = performance.now() + controlPatience.turnMs;
    if (!recording.connected) return away("the upstream is away: nothing is connected");
    if (call.request.byteLength + call.forwarded_request.byteLength > mostBytes) {
      const message = `a call of ${call.request.byteLength} bytes: the log takes ${mostBytes / 2}`;
      return { code: exhausted, message, response: none, reason: "limit_exceeded" };
    }
    const steps = reading.controlSteps(call.forwarded_method, call.forwarded_request);
    const [first = { method: call.forwarded_method, request: call.forwarded_request }, ...later] = steps;
    const id = ulid();
    const [answer, loop] = await inTurn(async () => {
      // In the log before it is made, so that what it does to the upstream is never without its cause.
      await recording.say(controlRequested(id, call));
      const loop = watchLoop(recording.listeners, signal);
      return [await take(id, call, first, sendBefore), loop] as const;
    });
    if (answer.code === 0 && later.length > 0) takeLater(call, later, loop).catch(onProblem);
    else loop.leave();
    if (answer.code === unavailable) return away(answer.message);
    return { code: answer.code, message: answer.message, response: answer.response, reason: "" };
  };
}

type Step = ReturnType<Normalizer["controlSteps"]>[number];

export function away(message: string): ControlReply {
  return { code: unavailable, message, response: none, reason: "upstream_away" };
}

type LoopWatch = {
  /** Resolves when a loop that started since has ended, or when none has started in time. */
  ended(): Promise<void>;
  leave(): void;
};

function watchLoop(listeners: Set<(event: Event) => void>, signal: AbortSignal): LoopWatch {
  const started = new AbortController();
  const over = new AbortController();
  const listen = ({ kind }: Event) => {
    if (kind === "loop.started") started.abort();
    else if (started.signal.aborted && (kind === "loop.succeeded" || kind === "loop.failed")) over.abort();
  };
  listeners.add(listen);
  const leave = () => void listeners.delete(listen);
  return {
    async ended() {
      await pause(loopStartMs, AbortSignal.any([started.signal, signal]));
      if (started.signal.aborted) await pause(loopEndMs, AbortSignal.any([over.signal, signal]));
      leave();
    },
    leave,
  };
}
