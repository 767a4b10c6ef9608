import { StatusCode } from "@tapedeck/proto/skaffold/enums/enums";
import {
  type BuildEvent,
  DebuggingContainerEvent,
  type DeployEvent,
  type DevLoopEvent,
  type FileSyncEvent,
  Metadata,
  type MetaEvent,
  PortEvent,
} from "@tapedeck/proto/skaffold/v1/skaffold";
import { assertNever } from "@tapedeck/shared/assert-never";
import { ownValue } from "@tapedeck/shared/own-value";
import { base64 } from "../states/base64.ts";
import type { V1Event } from "./api-event.ts";
import { containerKey } from "./container-key.ts";
import { resetForLoop, takeHints } from "./resets.ts";
import { freshV1, type LoopFacts, type SkaffoldState, type V1Facts, type Written } from "./state.ts";

/**
 * Applies an event of the v1 stream. An `injected` event came through Handle: Skaffold stores it like its own, but it starts
 * no runner, loop or phase and sets no codes, because Skaffold does these where it creates its own events.
 * See docs/upstreams/skaffold.md#state-from-events-in-v1.
 */
export function evolveV1(state: SkaffoldState, event: V1Event, injected: boolean): SkaffoldState {
  switch (event.$case) {
    case "metaEvent":
      return !injected && isNewRunner(event.value) ? newRunner(state, event.value) : state;
    case "devLoopEvent":
      return injected ? state : devLoop(state, event.value);
    default:
      return { ...state, v1: evolveFields(state.v1, event, injected) };
  }
}

/** A Handle call of another client may send a metaEvent too. Before Skaffold 1.9 its own had no metadata either. */
function isNewRunner(event: MetaEvent): boolean {
  return event.metadata !== undefined || event.entry.startsWith("Starting Skaffold: ");
}

function newRunner(state: SkaffoldState, { metadata }: MetaEvent): SkaffoldState {
  const { v1 } = state;
  const runner = v1.runner + 1;
  const next: V1Facts = {
    ...v1,
    ...freshV1,
    runner,
    flags: runner === 1 ? v1.flags : v1.flagsAtStart,
    metadata: metadata ? base64(Metadata.encode(metadata).finish()) : (v1.described?.metadata ?? null),
  };
  return takeHints({ ...state, v1: next });
}

function devLoop(state: SkaffoldState, event: DevLoopEvent): SkaffoldState {
  const { v1 } = state;
  switch (event.status) {
    case "In Progress":
      return takeHints({ ...state, v1: { ...v1, reportsLoops: true, loop: v1.loop + 1, current: freshV1.current } });
    case "Failed":
      return { ...state, v1: loopFailed(v1, event.err?.errCode ?? StatusCode.OK) };
    default:
      return { ...state, v1: { ...v1, current: { ...v1.current, ended: true } } };
  }
}

function loopFailed(v1: V1Facts, code: number): V1Facts {
  const { current } = v1;
  const failed = { ...v1, current: { ...current, failed: true, ended: true } };
  if (current.buildError !== null) return { ...failed, buildCode: written(v1, code) };
  // v1 has no event for a manifest that can't be rendered, but resets the earlier deploy all the same.
  const isRender = code === StatusCode.UNKNOWN_ERROR && !current.synced && !current.deployed;
  return isRender ? resetForLoop(failed, "deploy", v1.loop) : failed;
}

type FieldEvent = Exclude<V1Event, { $case: "metaEvent" | "devLoopEvent" }>;

function evolveFields(before: V1Facts, event: FieldEvent, injected: boolean): V1Facts {
  const v1 = { ...before, writes: before.writes + 1 };
  switch (event.$case) {
    case "buildEvent":
      return build(injected ? v1 : phaseOf(v1, "built", event.value), event.value, injected);
    case "TestEvent": {
      const phase = injected ? v1 : phaseOf(v1, "tested", event.value);
      const { status, actionableErr } = event.value;
      const failed = !injected && status === "Failed";
      const testCode = failed ? written(phase, actionableErr?.errCode ?? StatusCode.OK) : phase.testCode;
      return { ...phase, test: written(phase, status), testCode };
    }
    case "deployEvent": {
      const phase = injected ? v1 : phaseOf(v1, "deployed", event.value);
      return {
        ...phase,
        deploy: written(phase, event.value.status),
        deployCode: injected ? phase.deployCode : outcome(phase, phase.deployCode, event.value, deploySuccess),
      };
    }
    case "statusCheckEvent":
      return {
        ...v1,
        check: written(v1, event.value.status),
        checkCode: injected ? v1.checkCode : outcome(v1, v1.checkCode, event.value, checkSuccess),
      };
    case "resourceStatusCheckEvent":
      return { ...v1, resources: { ...v1.resources, [event.value.resource]: written(v1, event.value.status) } };
    case "portEvent": {
      const bytes = base64(PortEvent.encode(event.value).finish());
      return { ...v1, ports: { ...v1.ports, [event.value.localPort]: written(v1, bytes) } };
    }
    case "fileSyncEvent":
      return sync(v1, event.value, injected);
    case "debuggingContainerEvent":
      return debugging(v1, event.value);
    case "terminationEvent":
      return before;
    default:
      return assertNever(event);
  }
}

function build(v1: V1Facts, { artifact, status, errCode, actionableErr }: BuildEvent, injected: boolean): V1Facts {
  const artifacts = { ...v1.artifacts, [artifact]: written(v1, status) };
  if (injected) return { ...v1, artifacts };
  const failed = status === "Failed" ? errCode || (actionableErr?.errCode ?? StatusCode.OK) : null;
  const buildError = v1.current.buildError ?? failed;
  // The phase has failed when the last of its builds is over. Without a loop no other event reports it.
  const isOver = !Object.values(artifacts).some((one) => one?.value === "In Progress");
  const buildCode = buildError !== null && isOver ? written(v1, buildError) : v1.buildCode;
  return { ...v1, artifacts, current: { ...v1.current, buildError }, buildCode };
}

/**
 * A sync precedes the build of its loop, which clears it. If v2 reported that build first, the sync is already cleared. A
 * sync that was injected after the build or after the loop stays.
 */
function sync(v1: V1Facts, { status }: FileSyncEvent, injected: boolean): V1Facts {
  const { built, tested, deployed, failed, ended } = v1.current;
  const late = built || tested || deployed || (ended && (injected || !failed));
  const marked = injected ? v1 : { ...v1, current: { ...v1.current, synced: true } };
  const isCleared = !late && v1.loop >= 2 && v1.resetForBuild >= v1.loop;
  return { ...marked, sync: isCleared ? null : { ...written(v1, status), late } };
}

function debugging(v1: V1Facts, event: DebuggingContainerEvent): V1Facts {
  const container = containerKey(event);
  switch (event.status) {
    case "Started": {
      const bytes = base64(DebuggingContainerEvent.encode(event).finish());
      return { ...v1, debuggers: [...v1.debuggers, { ...written(v1, bytes), container }] };
    }
    case "Terminated":
      return { ...v1, debuggers: v1.debuggers.filter((one) => one.container !== container) };
    default:
      return v1;
  }
}

type Phase = Extract<keyof LoopFacts, "built" | "tested" | "deployed">;

const phases = { built: "build", tested: "test", deployed: "deploy" } as const;

/** The first event of a phase means that the phase has begun. */
function phaseOf(v1: V1Facts, phase: Phase, event: { readonly status: string }): V1Facts {
  const looped = v1.reportsLoops ? v1 : withInferredLoop(v1, phase, event);
  if (looped.current[phase]) return looped;
  return resetForLoop({ ...looped, current: { ...looped.current, [phase]: true } }, phases[phase], looped.loop);
}

/**
 * Before Skaffold 1.8 no event reports the start of a loop. A loop starts where a completed phase starts again, or where a
 * build follows a deploy.
 */
function withInferredLoop(
  v1: V1Facts,
  phase: Phase,
  event: { readonly status: string; readonly artifact?: string },
): V1Facts {
  if (event.status !== "In Progress") return v1;
  const { current } = v1;
  const before =
    phase === "built" ? ownValue(v1.artifacts, event.artifact ?? "") : phase === "tested" ? v1.test : v1.deploy;
  const again = current[phase] && before !== null && before !== undefined && before.value !== "In Progress";
  const backwards = phase === "built" && current.deployed;
  const isSameLoop = phase === "tested" || !(again || backwards);
  return isSameLoop ? v1 : { ...v1, loop: Math.max(2, v1.loop + 1), current: freshV1.current };
}

const deploySuccess = { text: "Complete", code: StatusCode.DEPLOY_SUCCESS };
const checkSuccess = { text: "Succeeded", code: StatusCode.STATUSCHECK_SUCCESS };

function outcome(
  v1: V1Facts,
  before: Written<number> | null,
  { status, errCode }: Pick<DeployEvent, "status" | "errCode">,
  success: { readonly text: string; readonly code: number },
): Written<number> | null {
  if (status === success.text) return written(v1, success.code);
  return status === "Failed" ? written(v1, errCode) : before;
}

function written<T>(v1: V1Facts, value: T): Written<T> {
  return { value, loop: v1.loop, at: v1.writes };
}
