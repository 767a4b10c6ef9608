import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { ControlCall } from "@tapedeck/proto/tapedeck/v1/recorder";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import type { Fact } from "../../normalize/fact.ts";
import { shorten } from "./shorten.ts";

export function controlRequested(
  call: string,
  { method, request, forwarded_method, forwarded_request, who }: ControlCall,
): Fact {
  return {
    kind: "control.requested",
    subject: method,
    summary: `${who || "somebody"} asks ${method}`,
    detail: {
      $case: "control",
      value: { method, call, who, request, forwarded_method, forwarded_request, code: 0, message: "" },
    },
  };
}

export type ControlResult = {
  /** The call as it was sent to the upstream. */
  readonly method: string;
  readonly request: Uint8Array;
  readonly code: number;
  readonly message: string;
};

export function controlAnswered(
  call: string,
  control: ControlCall,
  { method, request, code, message: fullMessage }: ControlResult,
): Fact {
  const accepted = code === 0;
  const message = shorten(fullMessage);
  return {
    kind: accepted ? "control.accepted" : "control.rejected",
    subject: control.method,
    outcome: accepted ? Outcome.OUTCOME_SUCCEEDED : Outcome.OUTCOME_FAILED,
    summary: accepted ? `${method} was accepted` : `${method} was rejected: ${message}`,
    detail: {
      $case: "control",
      value: {
        method: control.method,
        call,
        who: control.who,
        request: control.request,
        forwarded_method: method,
        forwarded_request: asBuffer(request),
        code,
        message,
      },
    },
  };
}
