import { State as StateV1, Metadata as V1Metadata } from "@tapedeck/proto/skaffold/v1/skaffold";
import { State as StateV2, Metadata as V2Metadata } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { SessionDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { base64 } from "../states/base64.ts";
import type { Described, Flags, SkaffoldState, V1Facts, V2Facts } from "./state.ts";

/** Takes what no event reports from the upstream's own answers: flags, artifact names, metadata; never statuses. */
export function described(state: SkaffoldState, detail: SessionDetail): SkaffoldState {
  const v1 = decodedState(StateV1, detail.states.v1);
  const v2 = decodedState(StateV2, detail.states.v2);
  return {
    ...state,
    v1: v1 ? describedV1(state.v1, v1) : state.v1,
    v2: v2 ? describedV2(state.v2, v2) : state.v2,
  };
}

function describedV1(facts: V1Facts, state: StateV1): V1Facts {
  const flags = flagsOf(state);
  const metadata = state.metadata ? base64(V1Metadata.encode(state.metadata).finish()) : null;
  return {
    ...facts,
    flags,
    flagsAtStart: facts.described ? facts.flagsAtStart : untouched(flags, facts.flags),
    metadata: metadata ?? facts.metadata,
    described: description(facts.runner, state, metadata, ["testState"]),
  };
}

function describedV2(facts: V2Facts, state: StateV2): V2Facts {
  const metadata = state.metadata ? base64(V2Metadata.encode(state.metadata).finish()) : null;
  return {
    ...facts,
    flags: flagsOf(state),
    metadata: metadata ?? facts.metadata,
    described: description(facts.runner, state, metadata, ["testState", "renderState", "verifyState", "execState"]),
  };
}

type AnyState = Pick<StateV1 | StateV2, "buildState" | "deployState" | "fileSyncState" | "metadata">;

function flagsOf(state: AnyState): Flags {
  return {
    build: state.buildState?.autoTrigger ?? false,
    sync: state.fileSyncState?.autoTrigger ?? false,
    deploy: state.deployState?.autoTrigger ?? false,
  };
}

/** The first description reports the command line's flags, except those that a call through Tapedeck has set by then. */
function untouched(described: Flags, before: Flags): Flags {
  return {
    build: before.build === null ? described.build : null,
    sync: before.sync === null ? described.sync : null,
    deploy: before.deploy === null ? described.deploy : null,
  };
}

function description<S extends AnyState>(
  runner: number,
  state: S,
  metadata: Described["metadata"],
  optional: readonly (keyof S & string)[],
): Described {
  return {
    runner,
    artifacts: Object.keys(state.buildState?.artifacts ?? {}),
    metadata,
    lacks: optional.filter((member) => state[member] === undefined),
  };
}

/** Undefined if it can't be decoded, and before there is a runner, when all members are unset. */
export function decodedState<S extends AnyState>(
  type: { readonly decode: (bytes: Uint8Array) => S },
  bytes: Uint8Array | undefined,
): S | undefined {
  if (!bytes) return undefined;
  try {
    const state = type.decode(bytes);
    return state.buildState ? state : undefined;
  } catch {
    return undefined;
  }
}
