import { fromBase64 } from "../states/base64.ts";
import type { Collection } from "../states/collection.ts";
import { fold } from "../states/fold.ts";
import { evolve } from "./evolve.ts";
import { readJobSpans } from "./jobs/read-job-spans.ts";
import { readJobs } from "./jobs/read-jobs.ts";
import type { ResourceKind } from "./resources.ts";
import { foldVersion, initialState, type VagrantState } from "./state.ts";
import { tables } from "./tables.ts";

export const vagrant = fold<VagrantState>({
  version: foldVersion,
  initial: initialState,
  channels: ["resources"],
  evolve,
  collections: {
    targets: itemsOf("target"),
    projects: itemsOf("project"),
    bases: itemsOf("basis"),
    boxes: itemsOf("box"),
    runners: itemsOf("runner"),
    version: {
      of: "state",
      items: ({ version }) => (version === null ? [] : [{ key: "version", bytes: fromBase64(version) }]),
    },
    jobs: { of: "tables", items: readJobs },
    job_spans: { of: "tables", items: readJobSpans },
  },
  tables,
  // The events are derived from the server's answers, so those answers can't contradict them.
  drift: () => undefined,
});

function itemsOf(kind: ResourceKind): Collection<VagrantState> {
  return {
    of: "state",
    items: ({ resources: { all } }) =>
      all.filter((resource) => resource.kind === kind).map(({ id, bytes }) => ({ key: id, bytes: fromBase64(bytes) })),
  };
}
