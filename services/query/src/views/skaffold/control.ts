import { TriggerRequest, UserIntentRequest } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { ControlDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { base64, fromBase64 } from "../states/base64.ts";
import { resetWrittenBefore } from "./resets.ts";
import type { Flags, PendingCall, SkaffoldState, V1Facts } from "./state.ts";

/** The limit of calls without an answer. The answers of older calls were lost. */
const maxPendingCalls = 100;

/** Remembers the call: it resets state while it runs, and the loop that it starts may write before its answer comes. */
export function requested(state: SkaffoldState, detail: ControlDetail): SkaffoldState {
  const call = { call: detail.call, ...sent(detail), at: state.v1.writes };
  return { ...state, calls: [...without(state.calls, detail.call), call].slice(-maxPendingCalls) };
}

export function rejected(state: SkaffoldState, detail: ControlDetail): SkaffoldState {
  return { ...state, calls: without(state.calls, detail.call) };
}

export function accepted(state: SkaffoldState, detail: ControlDetail): SkaffoldState {
  const pending = state.calls.find(({ call }) => call === detail.call);
  const { method, request } = detail.forwarded_method !== "" || !pending ? sent(detail) : pending;
  const at = pending?.at ?? state.v1.writes;
  const calls = without(state.calls, detail.call);
  return { ...state, calls, v1: afterCall(state.v1, method, fromBase64(request), at) };
}

/** The call as it was sent to the upstream. */
function sent(detail: ControlDetail): Pick<PendingCall, "method" | "request"> {
  return detail.forwarded_method !== ""
    ? { method: detail.forwarded_method, request: base64(detail.forwarded_request) }
    : { method: detail.method, request: base64(detail.request) };
}

/**
 * Handles only v1's calls: v2's are forwarded as v1's and do not change the upstream's v2 state. The event of a Handle call
 * comes back in the stream.
 */
function afterCall(v1: V1Facts, method: string, request: Uint8Array, at: number): V1Facts {
  switch (method) {
    case "/proto.SkaffoldService/Execute": {
      const intent = decoded(() => UserIntentRequest.decode(request))?.intent;
      if (intent?.devloop) return resetWrittenBefore(v1, "build", at);
      const built = intent?.build ? resetWrittenBefore(v1, "build", at) : v1;
      return intent?.deploy ? resetWrittenBefore(built, "deploy", at) : built;
    }
    case "/proto.SkaffoldService/AutoBuild":
      return afterToggle(v1, "build", request, at);
    case "/proto.SkaffoldService/AutoDeploy":
      return afterToggle(v1, "deploy", request, at);
    case "/proto.SkaffoldService/AutoSync":
      return afterToggle(v1, "sync", request, at);
    default:
      return v1;
  }
}

function afterToggle(v1: V1Facts, flag: keyof Flags, request: Uint8Array, at: number): V1Facts {
  const enabled = decoded(() => TriggerRequest.decode(request))?.state?.val?.value;
  if (enabled === undefined) return v1;
  const toggled = { ...v1, flags: { ...v1.flags, [flag]: enabled } };
  return enabled && flag !== "sync" ? resetWrittenBefore(toggled, flag, at) : toggled;
}

function without(calls: readonly PendingCall[], id: string): readonly PendingCall[] {
  return calls.filter(({ call }) => call !== id);
}

/** Undefined for a request that can't be decoded. The upstream refuses it, so it changes nothing. */
function decoded<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
