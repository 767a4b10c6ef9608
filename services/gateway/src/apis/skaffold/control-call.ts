import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { TriggerRequest } from "@tapedeck/proto/skaffold/v2/skaffold";
import { unreadableRequest } from "./errors.ts";
import type { ControlMethod } from "./methods.ts";

/** A client's control call as it goes to Skaffold: full gRPC method and request bytes. */
type ForwardedRequest = { readonly method: string; readonly request: Uint8Array };

/**
 * Skaffold's v2 control calls change nothing but v2's own state (docs/upstreams/skaffold.md#control-calls). Here they act: Execute and Auto* of v2 go
 * to v1, whose messages have the same numbers. v2 reads a missing `enabled` as false, v1 refuses it, so it is filled
 * in. Handle of v2 stays with v2, whose event stream it is meant for.
 * @throws UpstreamError for bytes that are not a request, as Skaffold words it
 */
export function forwarded(method: ControlMethod, request: Uint8Array): ForwardedRequest {
  if (method.api === "v1" || method.action === "handle") return { method: method.path, request };
  const path = method.path.replace("/proto.v2.SkaffoldV2Service/", "/proto.SkaffoldService/");
  if (method.action === "execute") return { method: path, request };
  const state = { val: { $case: "enabled" as const, value: isEnabled(request) } };
  return { method: path, request: TriggerRequest.encode({ state }).finish() };
}

function isEnabled(request: Uint8Array): boolean {
  try {
    return TriggerRequest.decode(request).state?.val?.value ?? false;
  } catch (cause) {
    throw unreadableRequest(cause);
  }
}

/** v2 words its 409 with a capital: "auto Build is already set to true" (docs/upstreams/skaffold.md#http-errors). */
export function answerText(method: ControlMethod, message: string): string {
  if (method.api === "v1" || method.action !== "auto") return message;
  return message.replace(/^auto ([a-z])/, (_, letter: string) => `auto ${letter.toUpperCase()}`);
}

/** The request message around the message that an HTTP body holds (field 1 of UserIntentRequest and TriggerRequest). */
export function requestFromBody(method: ControlMethod, body: Uint8Array, isEmpty: boolean): Uint8Array {
  if (method.bodyIsRequest) return body;
  if (isEmpty) return new Uint8Array();
  return new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(body).finish();
}
