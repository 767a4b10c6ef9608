import { table } from "../../db/table.ts";
import { type StateTable, stateTable } from "../states/state-table.ts";
import { artifactRow, debugContainerRow, phaseRow, portRow, resourceRow } from "./rows.ts";
import type { SkaffoldState } from "./state.ts";
import { toV1Message } from "./to-v1-state.ts";
import { toV2Message } from "./to-v2-state.ts";

export const tables: readonly StateTable<SkaffoldState>[] = [
  stateTable(table("skaffold_artifacts", ["session", "artifact"]), (state: SkaffoldState, of) =>
    Object.entries(toV1Message(state).buildState?.artifacts ?? {}).map(([artifact, status]) =>
      artifactRow(of, artifact, status),
    ),
  ),
  stateTable(table("skaffold_phases", ["session", "phase"]), (state: SkaffoldState, of) => {
    const v1 = toV1Message(state);
    const v2 = toV2Message(state);
    return [
      ...phaseRow(of, "build", v1.buildState),
      ...phaseRow(of, "test", v1.testState),
      ...phaseRow(of, "render", v2.renderState),
      ...phaseRow(of, "deploy", v1.deployState),
      ...phaseRow(of, "check", v1.statusCheckState),
      ...phaseRow(of, "sync", v1.fileSyncState),
      ...phaseRow(of, "verify", v2.verifyState),
      ...phaseRow(of, "exec", v2.execState),
    ];
  }),
  stateTable(table("skaffold_resources", ["session", "resource"]), (state: SkaffoldState, of) =>
    Object.entries(toV1Message(state).statusCheckState?.resources ?? {}).map(([resource, status]) =>
      resourceRow(of, resource, status),
    ),
  ),
  stateTable(table("skaffold_ports", ["session", "local_port"]), (state: SkaffoldState, of) =>
    Object.values(toV1Message(state).forwardedPorts).map((port) => portRow(of, port)),
  ),
  stateTable(table("skaffold_debug_containers", ["session", "place"]), (state: SkaffoldState, of) =>
    toV1Message(state).debuggingContainers.map((container, place) => debugContainerRow(of, place, container)),
  ),
];
