import { BinaryReader } from "@bufbuild/protobuf/wire";
import { StatusCode } from "@tapedeck/proto/skaffold/enums/enums";
import {
  BuildEvent,
  DebuggingContainerEvent,
  DeployEvent,
  DevLoopEvent,
  FileSyncEvent,
  MetaEvent,
  PortEvent,
  ResourceStatusCheckEvent,
  StatusCheckEvent,
  TestEvent,
} from "@tapedeck/proto/skaffold/v1/skaffold";
import * as v2 from "@tapedeck/proto/skaffold/v2/skaffold";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ownValue } from "@tapedeck/shared/own-value";
import type { V1Event, V2Event } from "./api-event.ts";

/**
 * The upstream's message as far as the normalized fields contain it, for frames that exceed the log's size limit. In
 * practice these are failures with megabytes of output in their error text.
 */
export function normalizedV1(event: Event): V1Event | undefined {
  const [noun, verb] = event.kind.split(".");
  const { detail, subject } = event;
  const errCode = codeOf(event);
  const actionableErr = event.error && { errCode, message: event.error.message, suggestions: [] };
  const status =
    (detail?.$case === "phase" && detail.value.status) ||
    ownValue(v1Texts, event.kind) ||
    ownValue(phaseTexts, verb ?? "") ||
    "";
  switch (isCauseOfLoop(event) ? "cause" : noun) {
    case "cause":
      return { $case: "devLoopEvent", value: DevLoopEvent.create({ status: "Failed", err: actionableErr }) };
    case "session":
      if (verb !== "configured") return undefined;
      return { $case: "metaEvent", value: MetaEvent.create({ entry: "Starting Skaffold: ", metadata: {} }) };
    case "loop": {
      const iteration = detail?.$case === "loop" ? detail.value.iteration : 0;
      return { $case: "devLoopEvent", value: DevLoopEvent.create({ iteration, status, err: actionableErr }) };
    }
    case "build": {
      const artifact = detail?.$case === "build" ? detail.value.artifact : subject;
      return { $case: "buildEvent", value: BuildEvent.create({ artifact, status, errCode, actionableErr }) };
    }
    case "test":
      return { $case: "TestEvent", value: TestEvent.create({ status, actionableErr }) };
    case "deploy":
      return { $case: "deployEvent", value: DeployEvent.create({ status, errCode, actionableErr }) };
    case "check":
      return { $case: "statusCheckEvent", value: StatusCheckEvent.create({ status, errCode, actionableErr }) };
    case "resource": {
      const reported = detail?.$case === "resource" ? detail.value : { resource: subject, status };
      const value = {
        resource: reported.resource,
        status: reported.status || status,
        statusCode: errCode,
        actionableErr,
      };
      return { $case: "resourceStatusCheckEvent", value: ResourceStatusCheckEvent.create(value) };
    }
    case "sync":
      return {
        $case: "fileSyncEvent",
        value: FileSyncEvent.create({ image: subject, status, errCode, actionableErr }),
      };
    case "port":
      if (detail?.$case !== "port") return undefined;
      return { $case: "portEvent", value: PortEvent.create(portOf(detail.value)) };
    case "debugger":
      if (detail?.$case !== "debug") return undefined;
      return {
        $case: "debuggingContainerEvent",
        value: DebuggingContainerEvent.create(debuggerOf(detail.value, status)),
      };
    default:
      return undefined;
  }
}

/**
 * Whether the first fact of a frame is the phase because of which its loop failed, with the error of the loop. The loop's
 * own end is the second one, which has no original to show that the frame was too large.
 */
function isCauseOfLoop({ kind, original }: Event): boolean {
  return !kind.startsWith("loop.") && eventFieldIn(original?.head ?? new Uint8Array()) === devLoopEventField;
}

/** The number of `event` in LogEntry, and that of `devLoopEvent` in Event. */
const eventField = 2;
const devLoopEventField = 9;

/** Number of the event's field in a LogEntry that is cut off; undefined where it was cut before the event. */
function eventFieldIn(head: Uint8Array): number | undefined {
  const reader = new BinaryReader(head);
  try {
    for (;;) {
      const [field, wireType] = reader.tag();
      if (field !== eventField) {
        reader.skip(wireType);
        continue;
      }
      reader.uint32(); // its length
      return reader.tag()[0];
    }
  } catch {
    return undefined;
  }
}

/** The same for v2: its own facts (render, verify, exec), and mirrors of what v1 reports as well. */
export function normalizedV2(event: Event): V2Event | undefined {
  const { detail } = event;
  const [noun, verb] = event.kind.split(".");
  if (detail?.$case === "mirror") return mirrored(detail.value);
  const status = (detail?.$case === "phase" && detail.value.status) || ownValue(v2Texts, verb ?? "") || "";
  switch (noun) {
    case "session":
      if (verb !== "configured") return undefined;
      return { $case: "metaEvent", value: v2.MetaEvent.create({ metadata: {} }) };
    case "loop":
      return { $case: "taskEvent", value: v2.TaskEvent.create({ task: "DevLoop", status }) };
    case "render":
      return { $case: "renderEvent", value: v2.RenderSubtaskEvent.create({ status }) };
    case "verify":
      return { $case: "verifyEvent", value: v2.VerifySubtaskEvent.create({ status }) };
    case "exec":
      return { $case: "execEvent", value: v2.ExecSubtaskEvent.create({ status }) };
    default:
      return undefined;
  }
}

type Mirrored = {
  readonly what: string;
  readonly status: string;
  readonly task_id: string;
  readonly subtask_id: string;
};

function mirrored({ what, status, task_id, subtask_id }: Mirrored): V2Event | undefined {
  const subtask = { id: subtask_id, task_id, status };
  switch (what) {
    case "taskEvent": {
      const task = task_id.slice(0, Math.max(0, task_id.lastIndexOf("-")));
      return { $case: "taskEvent", value: v2.TaskEvent.create({ id: task_id, task, status }) };
    }
    case "buildSubtaskEvent": {
      const value = { ...subtask, artifact: subtask_id, step: "Build" };
      return { $case: "buildSubtaskEvent", value: v2.BuildSubtaskEvent.create(value) };
    }
    case "testEvent":
      return { $case: "testEvent", value: v2.TestSubtaskEvent.create(subtask) };
    case "renderEvent":
      return { $case: "renderEvent", value: v2.RenderSubtaskEvent.create(subtask) };
    case "deploySubtaskEvent":
      return { $case: "deploySubtaskEvent", value: v2.DeploySubtaskEvent.create(subtask) };
    case "statusCheckSubtaskEvent": {
      const value = { ...subtask, resource: subtask_id };
      return { $case: "statusCheckSubtaskEvent", value: v2.StatusCheckSubtaskEvent.create(value) };
    }
    case "verifyEvent":
      return { $case: "verifyEvent", value: v2.VerifySubtaskEvent.create(subtask) };
    case "execEvent":
      return { $case: "execEvent", value: v2.ExecSubtaskEvent.create(subtask) };
    default:
      return undefined;
  }
}

function codeOf(event: Event): StatusCode {
  const code = event.error?.code ?? "";
  if (Object.hasOwn(StatusCode, code)) return StatusCode[code as keyof typeof StatusCode];
  return (Number.parseInt(code, 10) || StatusCode.OK) as StatusCode;
}

type PortFields = Extract<NonNullable<Event["detail"]>, { $case: "port" }>["value"];

function portOf(port: PortFields): Partial<PortEvent> {
  return {
    localPort: port.local_port,
    remotePort: port.remote_port,
    podName: port.pod,
    containerName: port.container,
    namespace: port.namespace,
    portName: port.port_name,
    resourceType: port.resource_type,
    resourceName: port.resource_name,
    address: port.address,
  };
}

type DebugFields = Extract<NonNullable<Event["detail"]>, { $case: "debug" }>["value"];

function debuggerOf(debug: DebugFields, status: string): Partial<DebuggingContainerEvent> {
  return {
    status,
    podName: debug.pod,
    containerName: debug.container,
    namespace: debug.namespace,
    artifact: debug.artifact,
    runtime: debug.runtime,
    debugPorts: debug.ports,
  };
}

const phaseTexts: Readonly<Record<string, string>> = {
  started: "In Progress",
  succeeded: "Complete",
  failed: "Failed",
  canceled: "Canceled",
};

/** The statuses for which v1 uses other words than for the phases. */
const v1Texts: Readonly<Record<string, string>> = {
  "loop.succeeded": "Succeeded",
  "sync.succeeded": "Succeeded",
  "check.started": "Started",
  "check.succeeded": "Succeeded",
  "resource.pending": "In Progress",
  "resource.ready": "Succeeded",
  "debugger.attached": "Started",
  "debugger.detached": "Terminated",
};

const v2Texts: Readonly<Record<string, string>> = {
  started: "InProgress",
  succeeded: "Succeeded",
  failed: "Failed",
  canceled: "Canceled",
};
