import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
} from "@grpc/grpc-js";
import type { TapedeckError } from "@tapedeck/shared/errors/errors";
import { callOver } from "@tapedeck/shared/sync/call-over";
import type { UpstreamError } from "../../apis/upstream-error.ts";
import type { Authenticator } from "../../auth/authenticator.ts";
import { requireRole } from "../../auth/roles.ts";
import type { Caller, Role } from "../../call-context.ts";
import { toStatus } from "./status.ts";

export type AuthenticationOptions = {
  readonly authenticate: Authenticator;
  /** The role that a method (by its path) needs; undefined: everyone may call it. */
  readonly roleOf: (path: string) => Role | undefined;
  /** Counts a refusal, and gives the error that the client gets. */
  readonly failed: (error: unknown) => TapedeckError | UpstreamError;
};

const callers = new WeakMap<Metadata, Caller>();

/** The caller of an authenticated call. */
export function callerOf({ metadata }: { readonly metadata: Metadata }): Caller {
  const caller = callers.get(metadata);
  if (caller === undefined) throw new Error("a call got past the authentication");
  return caller;
}

/**
 * Authenticates the calls of every service before they reach a handler. When the caller's token expires or is revoked, the
 * call ends at once with that error: nothing more of it reaches the handler or the client.
 */
export function authentication({ authenticate, roleOf, failed }: AuthenticationOptions): ServerInterceptor {
  return ({ path }, call) => {
    const role = roleOf(path);
    if (role === undefined) return new ServerInterceptingCall(call);
    const left = new AbortController();
    let isOver = false;
    const end = (error: unknown) => {
      if (isOver) return;
      isOver = true;
      call.sendStatus(toStatus(failed(error)));
    };
    const authorized = async (metadata: Metadata): Promise<Caller> => {
      const [authorization] = metadata.get("authorization");
      const caller = await authenticate({
        authorization: authorization === undefined ? undefined : String(authorization),
        peer: call.getPeer(),
      });
      requireRole(role, caller);
      return caller;
    };
    const listener = new ServerListenerBuilder()
      .withOnReceiveMetadata((metadata, next) => {
        authorized(metadata)
          .then((caller) => {
            const { revoked } = caller;
            revoked?.throwIfAborted();
            revoked?.addEventListener("abort", () => end(revoked.reason), { once: true, signal: left.signal });
            callers.set(metadata, caller);
            next(metadata);
          })
          .catch(end);
      })
      .withOnReceiveMessage((message, next) => {
        if (!isOver) next(message);
      })
      .withOnReceiveHalfClose((next) => {
        if (!isOver) next();
      })
      .withOnCancel(() => left.abort(callOver))
      .build();
    const responder = new ResponderBuilder()
      .withStart((next) => next(listener))
      .withSendMessage((message, next) => {
        if (!isOver) next(message);
      })
      .withSendStatus((status, next) => {
        if (!isOver) next(status);
        isOver = true;
      })
      .build();
    return new ServerInterceptingCall(call, responder);
  };
}
