import { fromBase64 } from "../states/base64.ts";
import { fold } from "../states/fold.ts";
import { evolve } from "./evolve.ts";
import { foldVersion, initialState, type VagrantState } from "./state.ts";
import { tables } from "./tables.ts";
import type { ThingKind } from "./things.ts";

export const vagrant = fold<VagrantState>({
  version: foldVersion,
  initial: initialState,
  channels: ["things"],
  evolve,
  collections: {
    targets: items("target"),
    projects: items("project"),
    bases: items("basis"),
    boxes: items("box"),
    runners: items("runner"),
    version: ({ version }) => (version === null ? [] : [{ key: "version", bytes: fromBase64(version) }]),
  },
  tables,
  // Its events are concluded from its answers: there is nothing else to hold them against.
  drift: () => undefined,
});

function items(kind: ThingKind) {
  return ({ things }: VagrantState) =>
    things.all.filter((thing) => thing.kind === kind).map(({ id, bytes }) => ({ key: id, bytes: fromBase64(bytes) }));
}
