import {
  BuildEvent,
  DeployEvent,
  DevLoopEvent,
  FileSyncEvent,
  MetaEvent,
  PortEvent,
  ResourceStatusCheckEvent,
  StatusCheckEvent,
} from "@tapedeck/proto/skaffold/v1/skaffold";
import type {
  BuildSubtaskEvent,
  PortForwardEvent,
  TaskEvent,
  Event as V2Message,
  MetaEvent as V2MetaEvent,
} from "@tapedeck/proto/skaffold/v2/skaffold";
import { ownValue } from "@tapedeck/shared/own-value";
import type { V1Event } from "./v1.ts";

type V2Event = NonNullable<V2Message["event_type"]>;

/** The words of v1 for what v2 calls so. */
const statuses: Readonly<Record<string, string>> = { InProgress: "In Progress", Succeeded: "Complete" };

function statusOf(status: string): string {
  return ownValue(statuses, status) ?? status;
}

/**
 * The event with which v1 reports the same; undefined if v1 has none. v2 reports a deploy and a check as tasks, and the
 * repeats of metaEvents at the start of loops make no runner: leave them out.
 */
export function v1EventOf(event: V2Event): V1Event | undefined {
  switch (event.$case) {
    case "metaEvent":
      return meta(event.value);
    case "taskEvent":
      return taskOf(event.value);
    case "buildSubtaskEvent":
      return build(event.value);
    case "testEvent": {
      const { status, actionableErr } = event.value;
      return { $case: "TestEvent", value: { status: statusOf(status), actionableErr } };
    }
    case "statusCheckSubtaskEvent": {
      const { resource, status, message, statusCode, actionableErr } = event.value;
      const value = { resource, message, statusCode, actionableErr };
      return {
        $case: "resourceStatusCheckEvent",
        value: ResourceStatusCheckEvent.fromPartial({
          ...value,
          status: status === "InProgress" ? "In Progress" : status,
        }),
      };
    }
    case "fileSyncEvent": {
      const { fileCount, image, status, actionableErr } = event.value;
      return fileSync({ fileCount, image, status: status === "InProgress" ? "In Progress" : status, actionableErr });
    }
    case "portEvent":
      return port(event.value);
    case "debuggingContainerEvent":
      return { $case: "debuggingContainerEvent", value: event.value };
    case "terminationEvent":
      return { $case: "terminationEvent", value: event.value };
    default:
      return undefined;
  }
}

export function fileSync(value: Pick<FileSyncEvent, "fileCount" | "image" | "status" | "actionableErr">): V1Event {
  return { $case: "fileSyncEvent", value: FileSyncEvent.fromPartial(value) };
}

function meta({ entry, metadata }: V2MetaEvent): V1Event {
  const numberOfArtifacts = metadata?.build?.artifacts.length ?? 0;
  const build = numberOfArtifacts === 0 ? {} : { build: { numberOfArtifacts } };
  return { $case: "metaEvent", value: MetaEvent.fromPartial({ entry, ...(metadata && { metadata: build }) }) };
}

function taskOf({ task, status, iteration, actionableErr }: TaskEvent): V1Event | undefined {
  switch (task) {
    case "DevLoop":
      return {
        $case: "devLoopEvent",
        value: DevLoopEvent.fromPartial({
          iteration,
          status: status === "InProgress" ? "In Progress" : status,
          ...(actionableErr && { err: actionableErr }),
        }),
      };
    case "Deploy":
      return { $case: "deployEvent", value: DeployEvent.fromPartial({ status: statusOf(status), actionableErr }) };
    case "StatusCheck": {
      const started = status === "InProgress" ? "Started" : status;
      return { $case: "statusCheckEvent", value: StatusCheckEvent.fromPartial({ status: started, actionableErr }) };
    }
    default:
      return undefined;
  }
}

function build({ artifact, step, status, actionableErr, ...platforms }: BuildSubtaskEvent): V1Event | undefined {
  if (step !== "Build") return undefined;
  const { hostPlatform, targetPlatforms } = platforms;
  const value = { artifact, status: statusOf(status), actionableErr, hostPlatform, targetPlatforms };
  return { $case: "buildEvent", value: BuildEvent.fromPartial(value) };
}

function port({ id: _, task_id: _task, ...forwarded }: PortForwardEvent): V1Event {
  const remotePort = forwarded.targetPort?.intVal ?? 0;
  return { $case: "portEvent", value: PortEvent.fromPartial({ ...forwarded, remotePort }) };
}
