import {
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
} from "@grpc/grpc-js";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { callOver } from "@tapedeck/shared/sync/call-over";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import type { UpstreamError } from "../../apis/upstream-error.ts";
import type { CallerLimits } from "../../limits/limits.ts";
import { callerOf } from "./authentication.ts";
import { toStatus } from "./status.ts";

export type CallLimitsOptions = {
  readonly limits: Pick<CallerLimits, "requests" | "live" | "arrivalMs">;
  /** Counts a refusal, and gives the error that the client gets. */
  readonly failed: (error: unknown) => TapedeckError | UpstreamError;
};

/** Health and reflection are open to everyone, and have no caller to limit. */
const isOpen = (path: string) => path.startsWith("/grpc.");

/**
 * Enforces the limits of callers before a call reaches a handler: how often they call, how many streams they have open, and
 * how long a request takes to arrive. Must come after the authentication.
 */
export function callLimits({ limits, failed }: CallLimitsOptions): ServerInterceptor {
  const { requests, live, arrivalMs } = limits;
  return ({ path, requestStream, responseStream }, call) => {
    if (isOpen(path)) return readAsAnswered(call);
    const over = new AbortController();
    const refuse = (error: unknown) => call.sendStatus(toStatus(failed(error)));
    const late = requestStream ? undefined : startTimer(() => refuse(tooLate(arrivalMs)), arrivalMs);
    const listener = new ServerListenerBuilder()
      .withOnReceiveMetadata((metadata, next) => {
        const caller = { caller: callerOf({ metadata }), peer: call.getPeer() };
        requests
          .take(caller)
          .then(() => {
            if (requestStream || responseStream) live.take(caller, over.signal);
            next(metadata);
          })
          .catch(refuse);
      })
      .withOnReceiveMessage((message, next) => {
        stopTimer(late);
        next(message);
      })
      .withOnCancel(() => {
        stopTimer(late);
        over.abort(callOver);
      })
      .build();
    return new ServerInterceptingCall(call, { start: (next) => next(listener) });
  };
}

/** Requests of one reflection call that may wait for the client to read the answers. */
const maxUnanswered = 16;

/** Everyone may call reflection, so a stream of requests whose answers are not read must not fill the memory. */
function readAsAnswered(call: ServerInterceptingCallInterface): ServerInterceptingCall {
  let unanswered = 0;
  let goOn: (() => void) | undefined;
  const listener = new ServerListenerBuilder()
    .withOnReceiveMessage((message, next) => {
      unanswered += 1;
      if (unanswered < maxUnanswered) next(message);
      else goOn = () => next(message);
    })
    .build();
  const responder = new ResponderBuilder()
    .withStart((next) => next(listener))
    .withSendMessage((message, next) => {
      unanswered -= 1;
      next(message);
      const held = goOn;
      goOn = undefined;
      held?.();
    })
    .build();
  return new ServerInterceptingCall(call, responder);
}

function tooLate(arrivalMs: number): TapedeckError {
  return new TapedeckError("limit_exceeded", `the request did not arrive within ${arrivalMs} ms`);
}
