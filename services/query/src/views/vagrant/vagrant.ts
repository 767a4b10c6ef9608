import { fold } from "../states/fold.ts";

export const vagrant = fold<object>({
  version: 1,
  initial: {},
  channels: ["things"],
  evolve: (state) => state,
  collections: {
    targets: () => [],
    projects: () => [],
    bases: () => [],
    boxes: () => [],
    runners: () => [],
    version: () => [],
  },
  tables: [],
  drift: () => undefined,
});
