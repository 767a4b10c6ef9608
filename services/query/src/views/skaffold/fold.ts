import { fold } from "../states/fold.ts";
import { drift } from "./drift.ts";
import { evolve } from "./evolve.ts";
import { foldVersion, initialState, type SkaffoldState } from "./state.ts";
import { tables } from "./tables.ts";
import { toV1State } from "./to-v1-state.ts";
import { toV2State } from "./to-v2-state.ts";

export const skaffold = fold<SkaffoldState>({
  version: foldVersion,
  initial: initialState,
  channels: ["v1", "v2"],
  evolve,
  collections: {
    v1: { of: "state", items: (state) => [{ key: "state", bytes: toV1State(state) }] },
    v2: { of: "state", items: (state) => [{ key: "state", bytes: toV2State(state) }] },
  },
  tables,
  drift,
});
