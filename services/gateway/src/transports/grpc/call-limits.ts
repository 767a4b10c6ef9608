import {
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
} from "@grpc/grpc-js";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { UpstreamError } from "../../apis/upstream-error.ts";
import type { CallerLimits } from "../../limits/limits.ts";
import { callerOf } from "./authentication.ts";
import { toStatus } from "./status.ts";

export type CallLimitsOptions = {
  readonly limits: Pick<CallerLimits, "requests" | "live" | "arrivalMs">;
  /** Counts a refusal, and gives what the client is told. */
  readonly failed: (error: unknown) => TapedeckError | UpstreamError;
};

/** Health and reflection, which are open to everyone: nobody's limits hold for them. */
const isOpen = (path: string) => path.startsWith("/grpc.");

/**
 * Holds the callers of every service to their limits, before a handler knows of the call: how often they call, how many
 * streams they have open, and how long they take to say what they want. To be passed after the authentication.
 */
export function callLimits({ limits, failed }: CallLimitsOptions): ServerInterceptor {
  const { requests, live, arrivalMs } = limits;
  return ({ path, requestStream, responseStream }, call) => {
    if (isOpen(path)) return readAsAnswered(call);
    const over = new AbortController();
    const refuse = (error: unknown) => call.sendStatus(toStatus(failed(error)));
    const late = requestStream ? undefined : setTimeout(() => refuse(tooLate(arrivalMs)), arrivalMs);
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
        clearTimeout(late);
        next(message);
      })
      .withOnCancel(() => {
        clearTimeout(late);
        over.abort();
      })
      .build();
    return new ServerInterceptingCall(call, { start: (next) => next(listener) });
  };
}

/** Requests of one open call that wait for an answer to be taken. */
const mostUnanswered = 16;

/** Reflection answers whoever asks, and a stream of questions whose answers nobody takes would fill the memory. */
function readAsAnswered(call: ServerInterceptingCallInterface): ServerInterceptingCall {
  let unanswered = 0;
  let goOn: (() => void) | undefined;
  const listener = new ServerListenerBuilder()
    .withOnReceiveMessage((message, next) => {
      unanswered += 1;
      if (unanswered < mostUnanswered) next(message);
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
