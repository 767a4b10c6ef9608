import { fromBinary } from "@bufbuild/protobuf";
import { isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { TriggerRequest } from "@tapedeck/proto/skaffold/v2/skaffold";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { UpstreamError } from "../upstream-error.ts";
import type { ControlMethod } from "./methods.ts";

/** How a client's control call goes to Skaffold: full gRPC method and request bytes. */
type Forwarded = { readonly method: string; readonly request: Uint8Array };

/**
 * Skaffold's v2 control calls change nothing but v2's own state (docs/upstreams/skaffold.md#control-calls). Here they
 * act: Execute and Auto* of v2 go to v1, whose messages have the same numbers. v2 reads a missing `enabled` as false,
 * v1 refuses it, so it is filled in. Handle of v2 stays with v2, whose event stream it is meant for.
 * @throws UpstreamError as Skaffold refuses bytes that are no request
 */
export function forwarded(method: ControlMethod, request: Uint8Array): Forwarded {
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
    throw new UpstreamError(13, `grpc: error unmarshalling request: ${cause instanceof Error ? cause.message : cause}`);
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

/** What has to be known of the session to tell whether a Handle call is dangerous. */
export type HandleCircumstances = {
  /** The runner exists: GetState is not empty. */
  readonly runnerExists: () => Promise<boolean>;
  /** A v2 Auto* call was made through Tapedeck in this session. */
  readonly v2AutoWasCalled: () => Promise<boolean>;
};

/**
 * Why Skaffold would crash on this Handle call (docs/upstreams/skaffold.md#handle: each ends the process with exit code
 * 2); undefined when it would not. Bytes that are no event are left to Skaffold, which refuses them unharmed.
 */
export async function dangerOf(
  method: ControlMethod,
  request: Uint8Array,
  circumstances: HandleCircumstances,
): Promise<string | undefined> {
  const what = eventIn(method, request);
  if (what === undefined) return undefined;
  if (what.name === "terminationEvent") {
    return "a terminationEvent closes Skaffold's event channel: its next real event would crash it";
  }
  if (what.failedWithoutError) {
    return "a devLoopEvent with status Failed and no err crashes Skaffold: add err {errCode, message}";
  }
  if (needsRunner.has(what.name) && !(await circumstances.runnerExists())) {
    return `a ${what.name} before Skaffold has read its configuration crashes it: wait for the first dev loop`;
  }
  if (what.name === "statusCheckSubtaskEvent" && (await circumstances.v2AutoWasCalled())) {
    return "a v2 statusCheckSubtaskEvent after a v2 auto-build, auto-sync or auto-deploy call crashes Skaffold";
  }
  return undefined;
}

const needsRunner: ReadonlySet<string> = new Set([
  "buildEvent",
  "buildSubtaskEvent",
  "deployEvent",
  "deploySubtaskEvent",
  "TestEvent",
  "testEvent",
  "fileSyncEvent",
]);

type HandledEvent = { readonly name: string; readonly failedWithoutError: boolean };

/** Read as Skaffold reads it: parts of one field that come apart on the wire are one. */
function eventIn({ action, bodyType }: ControlMethod, request: Uint8Array): HandledEvent | undefined {
  if (action !== "handle") return undefined;
  const desc = messageType(bodyType);
  let event: ReflectMessage;
  try {
    event = reflect(desc, fromBinary(desc, request));
  } catch {
    return undefined;
  }
  const field = desc.oneofs[0] && event.oneofCase(desc.oneofs[0]);
  if (field?.message === undefined) return undefined;
  return {
    name: field.name,
    failedWithoutError: field.name === "devLoopEvent" && isFailedWithoutError(event.get(field)),
  };
}

function isFailedWithoutError(loop: unknown): boolean {
  if (!isReflectMessage(loop)) return false;
  const [status, err] = ["status", "err"].map((name) => loop.fields.find((field) => field.name === name));
  if (status === undefined || err === undefined) throw new Error("proto.DevLoopEvent has no status or err");
  return loop.get(status) === "Failed" && !loop.isSet(err);
}
