import {
  DebuggingContainerEvent,
  Metadata,
  PortForwardEvent,
  type TaskEvent,
} from "@tapedeck/proto/skaffold/v2/skaffold";
import { assertNever } from "@tapedeck/shared/assert-never";
import { ownValue } from "@tapedeck/shared/own-value";
import { base64 } from "../states/base64.ts";
import type { V2Event } from "./api-event.ts";
import { containerKey } from "./container-key.ts";
import { hintReset } from "./resets.ts";
import { freshV2, type ResettingPhase, type SkaffoldState, type V2Facts } from "./state.ts";

/** Applies an event of the v2 stream to v2's own state, and what it reports about v1 to v1's. `injected`: see v1. See docs/upstreams/skaffold.md#state-from-events-in-v2. */
export function evolveV2(before: SkaffoldState, event: V2Event, injected: boolean): SkaffoldState {
  if (injected && (event.$case === "metaEvent" || event.$case === "taskEvent")) return before;
  const { loopJustStarted } = before.v2;
  const state = loopJustStarted ? { ...before, v2: { ...before.v2, loopJustStarted: false } } : before;
  switch (event.$case) {
    case "metaEvent":
      return event.value.metadata ? meta(state, event.value.metadata, loopJustStarted) : state;
    case "taskEvent":
      return task(state, event.value);
    default: {
      const v2 = evolveFields(state.v2, event);
      return v2 === state.v2 ? state : { ...state, v2: { ...v2, writes: v2.writes + 1 } };
    }
  }
}

/** Applies a metaEvent: of a new runner, or repeated at the start of a loop. */
function meta(state: SkaffoldState, reported: Metadata, loopJustStarted: boolean): SkaffoldState {
  const { v1, v2, hints } = state;
  const metadata = base64(Metadata.encode(reported).finish());
  const isRepeated = v2.runner > 0 && (reported.runID !== "" ? reported.runID === v2.runId : loopJustStarted);
  if (isRepeated) return { ...state, v2: { ...v2, metadata } };
  const runner = v2.runner + 1;
  const names = reported.build?.artifacts.map(({ name }) => name);
  const isNews = names !== undefined && runner >= v1.runner;
  return {
    ...state,
    v2: { ...v2, ...freshV2, runner, loop: 0, runId: reported.runID, metadata },
    hints: isNews ? { ...hints, artifacts: [...hints.artifacts, { runner, names }] } : hints,
  };
}

const phases: Readonly<Record<string, ResettingPhase>> = { Build: "build", Test: "test", Render: "deploy" };

function task(state: SkaffoldState, { task, status }: TaskEvent): SkaffoldState {
  if (status !== "InProgress") return state;
  const { v2 } = state;
  if (task === "DevLoop") {
    const loop = v2.loop + 1;
    return { ...state, v2: { ...v2, ...freshV2, loop, reportsLoops: true, loopJustStarted: true } };
  }
  const phase = ownValue(phases, task);
  return phase ? hintReset(state, v2.runner, v2.loop, phase) : state;
}

type FieldEvent = Exclude<V2Event, { $case: "metaEvent" | "taskEvent" }>;

function evolveFields(v2: V2Facts, event: FieldEvent): V2Facts {
  switch (event.$case) {
    case "buildSubtaskEvent": {
      const { artifact, step, status } = event.value;
      return step === "Build" ? { ...v2, artifacts: { ...v2.artifacts, [artifact]: status } } : v2;
    }
    case "testEvent":
      return { ...v2, test: event.value.status };
    case "renderEvent":
      return { ...v2, render: event.value.status };
    case "deploySubtaskEvent":
      return { ...v2, deploy: event.value.status };
    case "verifyEvent":
      return { ...v2, verify: event.value.status };
    case "execEvent":
      return { ...v2, exec: event.value.status };
    case "fileSyncEvent":
      return { ...v2, sync: event.value.status };
    case "statusCheckSubtaskEvent":
      return { ...v2, resources: { ...v2.resources, [event.value.resource]: event.value.status } };
    case "portEvent": {
      const bytes = base64(PortForwardEvent.encode(event.value).finish());
      return { ...v2, ports: { ...v2.ports, [event.value.localPort]: bytes } };
    }
    case "debuggingContainerEvent":
      return debugging(v2, event.value);
    case "skaffoldLogEvent":
    case "applicationLogEvent":
    case "cloudRunReadyEvent":
    case "terminationEvent":
      return v2;
    default:
      return assertNever(event);
  }
}

function debugging(v2: V2Facts, event: DebuggingContainerEvent): V2Facts {
  const container = containerKey(event);
  switch (event.status) {
    case "Started": {
      const value = base64(DebuggingContainerEvent.encode(event).finish());
      return { ...v2, debuggers: [...v2.debuggers, { value, container }] };
    }
    case "Terminated":
      return { ...v2, debuggers: v2.debuggers.filter((one) => one.container !== container) };
    default:
      return v2;
  }
}
