import { fromBinary } from "@bufbuild/protobuf";
import { isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { ControlMethod } from "./methods.ts";

/** What decides, besides its bytes, whether a Handle call is dangerous. */
export type HandleSituation = {
  /** The runner exists: GetState is not empty. */
  readonly runnerExists: () => Promise<boolean>;
  /** A v2 Auto* call was made through Tapedeck in this session. */
  readonly v2AutoWasCalled: () => Promise<boolean>;
};

/**
 * Why Skaffold would crash on this Handle call; undefined when it would not. Each of these calls ends the process with
 * exit code 2 (docs/upstreams/skaffold.md#handle). Bytes that are not an event pass: Skaffold refuses them unharmed.
 */
export async function dangerOf(
  method: ControlMethod,
  request: Uint8Array,
  situation: HandleSituation,
): Promise<string | undefined> {
  const what = eventIn(method, request);
  if (what === undefined) return undefined;
  if (what.name === "terminationEvent") {
    return "a terminationEvent closes Skaffold's event channel: its next real event would crash it";
  }
  if (what.failedWithoutError) {
    return "a devLoopEvent with status Failed and no err crashes Skaffold: add err {errCode, message}";
  }
  if (needsRunner.has(what.name) && !(await situation.runnerExists())) {
    return `a ${what.name} before Skaffold has read its configuration crashes it: wait for the first dev loop`;
  }
  if (what.name === "statusCheckSubtaskEvent" && (await situation.v2AutoWasCalled())) {
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

/** Merges the parts of a field that are apart on the wire, as Skaffold does. */
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
