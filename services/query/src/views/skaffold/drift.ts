import { State as StateV1 } from "@tapedeck/proto/skaffold/v1/skaffold";
import { State as StateV2 } from "@tapedeck/proto/skaffold/v2/skaffold";
import { ownValue } from "@tapedeck/shared/own-value";
import type { StateAnswer } from "../states/fold.ts";
import type { SkaffoldState } from "./state.ts";
import { toV1Message } from "./to-v1-state.ts";
import { toV2Message } from "./to-v2-state.ts";

const busy = new Set(["In Progress", "InProgress", "Started"]);

/**
 * Names the statuses in which Skaffold's own answer differs from the fold. Compares only at rest, because an answer can't
 * be tied to a position in the events while they flow.
 */
export function drift(state: SkaffoldState, { channel, state: bytes }: StateAnswer): readonly string[] | undefined {
  switch (channel) {
    case "v1":
      return differences("v1", statuses(toV1Message(state)), decoded(StateV1, bytes));
    case "v2":
      return differences("v2", statuses(toV2Message(state)), decoded(StateV2, bytes));
    default:
      return undefined;
  }
}

type Statuses = Readonly<Record<string, string>>;

function differences(api: string, folded: Statuses, answered: Statuses | undefined): string[] | undefined {
  if (answered === undefined || !atRest(folded) || !atRest(answered)) return undefined;
  const names = new Set([...Object.keys(folded), ...Object.keys(answered)]);
  const text = (status: string | undefined) => status ?? "nothing";
  return [...names]
    .filter((name) => ownValue(folded, name) !== ownValue(answered, name))
    .map(
      (name) =>
        `${api} ${name}: Skaffold says ${text(ownValue(answered, name))}, its events ${text(ownValue(folded, name))}`,
    );
}

function atRest(statuses: Statuses): boolean {
  return !Object.values(statuses).some((status) => busy.has(status));
}

/** Undefined for bytes that can't be decoded, and before there is a runner. */
function decoded<S extends StateV1 | StateV2>(
  type: { readonly decode: (bytes: Uint8Array) => S },
  bytes: Uint8Array,
): Statuses | undefined {
  try {
    const state = type.decode(bytes);
    return state.buildState === undefined ? undefined : statuses(state);
  } catch {
    return undefined;
  }
}

function statuses(state: StateV1 | StateV2): Statuses {
  const { buildState, testState, deployState, statusCheckState, fileSyncState } = state;
  const phases: Readonly<Record<string, { readonly status: string } | undefined>> = {
    testState,
    deployState,
    statusCheckState,
    fileSyncState,
    renderState: "renderState" in state ? state.renderState : undefined,
    verifyState: "verifyState" in state ? state.verifyState : undefined,
    execState: "execState" in state ? state.execState : undefined,
  };
  return Object.fromEntries([
    ...Object.entries(buildState?.artifacts ?? {}).map(([name, status]) => [`artifact ${name}`, status]),
    ...Object.entries(statusCheckState?.resources ?? {}).map(([name, status]) => [`resource ${name}`, status]),
    ...Object.entries(phases).flatMap(([name, phase]) => (phase === undefined ? [] : [[name, phase.status]])),
  ]);
}
