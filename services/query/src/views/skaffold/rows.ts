import { StatusCode, statusCodeToJSON } from "@tapedeck/proto/skaffold/enums/enums";
import type { DebuggingContainerEvent, PortEvent } from "@tapedeck/proto/skaffold/v1/skaffold";
import type {
  SkaffoldArtifactRow,
  SkaffoldDebugContainerRow,
  SkaffoldPhaseRow,
  SkaffoldPortRow,
  SkaffoldResourceRow,
} from "../../db/schema.ts";
import { key, text } from "../../db/text.ts";
import type { OfSession } from "../states/state-table.ts";

export function artifactRow(of: OfSession, artifact: string, status: string): SkaffoldArtifactRow {
  return { ...of, artifact: key(artifact), status: text(status) };
}

export function resourceRow(of: OfSession, resource: string, status: string): SkaffoldResourceRow {
  return { ...of, resource: key(resource), status: text(status) };
}

export function portRow(of: OfSession, port: PortEvent): SkaffoldPortRow {
  return {
    ...of,
    local_port: port.localPort,
    remote_port: port.remotePort,
    resource_type: text(port.resourceType),
    resource_name: text(port.resourceName),
    namespace: text(port.namespace),
    pod: text(port.podName),
    container: text(port.containerName),
    port_name: text(port.portName),
    address: text(port.address),
  };
}

/** `place`: the index in the upstream's list, which may hold the same container twice. */
export function debugContainerRow(
  of: OfSession,
  place: number,
  container: DebuggingContainerEvent,
): SkaffoldDebugContainerRow {
  return {
    ...of,
    place,
    namespace: text(container.namespace),
    pod: text(container.podName),
    container: text(container.containerName),
    artifact: text(container.artifact),
    runtime: text(container.runtime),
    ports: Object.fromEntries(Object.entries(container.debugPorts).map(([name, port]) => [text(name), port])),
  };
}

type PhaseState = {
  readonly status?: string;
  readonly statusCode?: StatusCode;
  readonly autoTrigger?: boolean;
};

/** No row before there is a runner, nor for a phase that this version of Skaffold does not have. */
export function phaseRow(of: OfSession, name: string, state: PhaseState | undefined): SkaffoldPhaseRow[] {
  if (state === undefined) return [];
  const { status = "", statusCode = StatusCode.OK, autoTrigger = null } = state;
  return [
    {
      ...of,
      phase: name,
      status: v1Text(text(status)),
      status_code: codeName(statusCode),
      auto_trigger: autoTrigger,
    },
  ];
}

/** v2 omits the space in a status. The tables have one spelling for both APIs. */
function v1Text(status: string): string {
  if (status === "NotStarted") return "Not Started";
  return status === "InProgress" ? "In Progress" : status;
}

function codeName(code: StatusCode): string {
  const name = statusCodeToJSON(code);
  return name === "UNRECOGNIZED" ? String(code) : name;
}
