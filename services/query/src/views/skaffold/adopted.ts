import { StatusCode } from "@tapedeck/proto/skaffold/enums/enums";
import {
  DebuggingContainerEvent as DebuggerV1,
  PortEvent as PortV1,
  State as StateV1,
} from "@tapedeck/proto/skaffold/v1/skaffold";
import {
  DebuggingContainerEvent as DebuggerV2,
  PortForwardEvent as PortV2,
  State as StateV2,
} from "@tapedeck/proto/skaffold/v2/skaffold";
import type { GapDetail, SessionDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { base64 } from "../states/base64.ts";
import { containerKey } from "./container-key.ts";
import { decodedState } from "./described.ts";
import { mapValues } from "./map-values.ts";
import type { SkaffoldState, V1Facts, V2Facts, Written } from "./state.ts";

/**
 * Makes Skaffold's own answers the state. If the API's stream continues, later events change the answer like any other
 * state. If its stream broke, the answer stays until the next one.
 */
export function adopted(state: SkaffoldState, { states }: SessionDetail): SkaffoldState {
  const v1 = decodedState(StateV1, states.v1);
  const v2 = decodedState(StateV2, states.v2);
  const afterV1 = v1 === undefined ? state : adoptedV1(state, v1);
  return v2 === undefined ? afterV1 : adoptedV2(afterV1, v2);
}

/** Applies a gap: the stream broke, so only Skaffold itself knows its state now. */
export function gapOpened(state: SkaffoldState, { channel, open }: GapDetail): SkaffoldState {
  if (!open || !isApi(channel) || channel in state.broken) return state;
  return { ...state, broken: { ...state.broken, [channel]: null } };
}

/** Applies a filled gap: the missing events have come, so the events define the state again. */
export function gapFilled(state: SkaffoldState, { channel }: GapDetail): SkaffoldState {
  if (!isApi(channel) || !(channel in state.broken)) return state;
  const { [channel]: _, ...broken } = state.broken;
  return { ...state, broken };
}

function isApi(channel: string): channel is "v1" | "v2" {
  return channel === "v1" || channel === "v2";
}

function adoptedV1(state: SkaffoldState, answer: StateV1): SkaffoldState {
  if ("v1" in state.broken) return withAnswer(state, "v1", StateV1.encode(answer).finish());
  const at = state.v1.writes + 1;
  const { loop } = state.v1;
  const put = <T>(value: T): Written<T> => ({ value, loop, at });
  const status = (reported: string | undefined) =>
    reported === undefined || reported === "Not Started" ? null : put(reported);
  const code = (reported: StatusCode | undefined) =>
    reported === undefined || reported === StatusCode.OK ? null : put<number>(reported);
  const { buildState, testState, deployState, statusCheckState, fileSyncState } = answer;
  const sync = status(fileSyncState?.status);
  const v1: V1Facts = {
    ...state.v1,
    writes: at,
    artifacts: mapValues(buildState?.artifacts ?? {}, status),
    buildCode: code(buildState?.statusCode),
    test: status(testState?.status),
    testCode: code(testState?.statusCode),
    deploy: status(deployState?.status),
    deployCode: code(deployState?.statusCode),
    check: status(statusCheckState?.status),
    checkCode: code(statusCheckState?.statusCode),
    resources: mapValues(statusCheckState?.resources ?? {}, put),
    // The sync is still reported, so it came after the build of its loop, if there was one.
    sync: sync && { ...sync, late: true },
    ports: mapValues(answer.forwardedPorts, (port) => put(base64(PortV1.encode(port).finish()))),
    debuggers: answer.debuggingContainers.map((one) => ({
      ...put(base64(DebuggerV1.encode(one).finish())),
      container: containerKey(one),
    })),
  };
  return { ...state, v1 };
}

function adoptedV2(state: SkaffoldState, answer: StateV2): SkaffoldState {
  if ("v2" in state.broken) return withAnswer(state, "v2", StateV2.encode(answer).finish());
  const status = (reported: string | undefined) =>
    reported === undefined || reported === "NotStarted" ? null : reported;
  const { buildState, testState, renderState, deployState, verifyState, execState, fileSyncState } = answer;
  const started = Object.entries(buildState?.artifacts ?? {}).filter(([, reported]) => status(reported) !== null);
  const v2: V2Facts = {
    ...state.v2,
    writes: state.v2.writes + 1,
    artifacts: Object.fromEntries(started),
    test: status(testState?.status),
    render: status(renderState?.status),
    deploy: status(deployState?.status),
    verify: status(verifyState?.status),
    exec: status(execState?.status),
    sync: status(fileSyncState?.status),
    resources: { ...answer.statusCheckState?.resources },
    ports: mapValues(answer.forwardedPorts, (port) => base64(PortV2.encode(port).finish())),
    debuggers: answer.debuggingContainers.map((one) => ({
      value: base64(DebuggerV2.encode(one).finish()),
      container: containerKey(one),
    })),
  };
  return { ...state, v2 };
}

function withAnswer(state: SkaffoldState, api: "v1" | "v2", answer: Uint8Array): SkaffoldState {
  return { ...state, broken: { ...state.broken, [api]: base64(answer) } };
}
