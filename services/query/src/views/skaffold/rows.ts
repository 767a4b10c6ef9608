import { StatusCode, statusCodeToJSON } from "@tapedeck/proto/skaffold/enums/enums";
import type {
  SkaffoldArtifactRow,
  SkaffoldDebugContainerRow,
  SkaffoldPhaseRow,
  SkaffoldPortRow,
  SkaffoldResourceRow,
} from "../../db/schema.ts";
import { key, text } from "../../db/text.ts";
import { type OfSession, type StateTable, stateTable } from "../states/state-table.ts";
import type { SkaffoldState } from "./state.ts";
import { toV1Message } from "./to-v1-state.ts";
import { toV2Message } from "./to-v2-state.ts";

const artifacts = stateTable<SkaffoldState, SkaffoldArtifactRow>(
  {
    name: "skaffold_artifacts",
    key: ["session", "artifact"],
    columns: { session: "text", source: "text", artifact: "text", status: "text" },
  },
  (state, of) =>
    Object.entries(toV1Message(state).buildState?.artifacts ?? {}).map(([artifact, status]) => ({
      ...of,
      artifact: key(artifact),
      status: text(status),
    })),
);

const phases = stateTable<SkaffoldState, SkaffoldPhaseRow>(
  {
    name: "skaffold_phases",
    key: ["session", "phase"],
    columns: {
      session: "text",
      source: "text",
      phase: "text",
      status: "text",
      status_code: "text",
      auto_trigger: "boolean",
    },
  },
  (state, of) => {
    const v1 = toV1Message(state);
    const v2 = toV2Message(state);
    return [
      ...phase(of, "build", v1.buildState),
      ...phase(of, "test", v1.testState),
      ...phase(of, "render", v2.renderState),
      ...phase(of, "deploy", v1.deployState),
      ...phase(of, "check", v1.statusCheckState),
      ...phase(of, "sync", v1.fileSyncState),
      ...phase(of, "verify", v2.verifyState),
      ...phase(of, "exec", v2.execState),
    ];
  },
);

const resources = stateTable<SkaffoldState, SkaffoldResourceRow>(
  {
    name: "skaffold_resources",
    key: ["session", "resource"],
    columns: { session: "text", source: "text", resource: "text", status: "text" },
  },
  (state, of) =>
    Object.entries(toV1Message(state).statusCheckState?.resources ?? {}).map(([resource, status]) => ({
      ...of,
      resource: key(resource),
      status: text(status),
    })),
);

const ports = stateTable<SkaffoldState, SkaffoldPortRow>(
  {
    name: "skaffold_ports",
    key: ["session", "local_port"],
    columns: {
      session: "text",
      source: "text",
      local_port: "int",
      remote_port: "int",
      resource_type: "text",
      resource_name: "text",
      namespace: "text",
      pod: "text",
      container: "text",
      port_name: "text",
      address: "text",
    },
  },
  (state, of) =>
    Object.values(toV1Message(state).forwardedPorts).map((port) => ({
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
    })),
);

const debugContainers = stateTable<SkaffoldState, SkaffoldDebugContainerRow>(
  {
    name: "skaffold_debug_containers",
    key: ["session", "place"],
    columns: {
      session: "text",
      source: "text",
      place: "int",
      namespace: "text",
      pod: "text",
      container: "text",
      artifact: "text",
      runtime: "text",
      ports: "jsonb",
    },
  },
  (state, of) =>
    toV1Message(state).debuggingContainers.map((container, place) => ({
      ...of,
      place,
      namespace: text(container.namespace),
      pod: text(container.podName),
      container: text(container.containerName),
      artifact: text(container.artifact),
      runtime: text(container.runtime),
      ports: Object.fromEntries(Object.entries(container.debugPorts).map(([name, port]) => [text(name), port])),
    })),
);

export const tables: readonly StateTable<SkaffoldState>[] = [artifacts, phases, resources, ports, debugContainers];

type PhaseState = {
  readonly status?: string;
  readonly statusCode?: StatusCode;
  readonly autoTrigger?: boolean;
};

/** None before there is a runner, nor for a phase that this version of Skaffold does not have. */
function phase(of: OfSession, name: string, state: PhaseState | undefined): SkaffoldPhaseRow[] {
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

/** v2 writes the same words without a space; in SQL they are one word. */
function v1Text(status: string): string {
  if (status === "NotStarted") return "Not Started";
  return status === "InProgress" ? "In Progress" : status;
}

function codeName(code: StatusCode): string {
  const name = statusCodeToJSON(code);
  return name === "UNRECOGNIZED" ? String(code) : name;
}
