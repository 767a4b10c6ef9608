import { z } from "zod";
import { count64, time } from "./fields.ts";

const name = z.string().optional();
const date = z.string().meta({ format: "date" }).optional();

/** The columns that every kind of statistics can be grouped by. */
const grouped = {
  developer: name,
  project: name,
  source: name,
  hour: time("Begin of the hour.").optional(),
  day: date,
  week: date.describe("Its Monday."),
  time: time("When it began; of failures, when it failed.").optional(),
  loop: name.describe("`<session>.<runner>.<loop>`; outside of loops both numbers are 0."),
  labels: z.record(z.string(), z.string()).optional().describe("Of `label.<name>`: empty where there is none."),
};
const ofCause = {
  phase: name.describe("What failed first: `build`, `test`, `deploy`, `check`, `command` …; empty: not known."),
  errorCode: name,
  error: name,
  artifact: name,
};
const milliseconds = (what: string) => z.int().nullable().describe(`Milliseconds: ${what}; null without any.`);

export const buildStats = z
  .object({
    artifact: name,
    ...grouped,
    count: count64("Builds that ran: succeeded or failed"),
    failed: count64("Of these, failed"),
    failureRate: z.number().min(0).max(1).describe("failed / count; 0 when nothing was built."),
    p50Ms: milliseconds("median of the builds that ran"),
    p90Ms: milliseconds("90th percentile of the builds that ran"),
    p99Ms: milliseconds("99th percentile of the builds that ran"),
    cached: count64("Not counted above: found in the cache"),
    canceled: count64("Not counted above: canceled"),
    unknown: count64("Not counted above: the end was not observed"),
  })
  .describe("How long builds take; with the columns that were grouped by.");

const phase = (what: string) =>
  z
    .object({
      waitedMs: count64("Milliseconds that the loops waited for it together"),
      share: z.number().min(0).max(1).describe("This waitedMs / that of the loops; 0 when nothing was waited for."),
    })
    .describe(what);

export const loopStats = z
  .object({
    ...grouped,
    loops: count64("Loops that are over"),
    failed: count64("Of these, failed"),
    overtaken: count64("Of these, overtaken: the next change came before the loop was ready"),
    overtakenShare: z.number().min(0).max(1).describe("overtaken / loops; 0 without loops."),
    waitedMs: count64("Milliseconds that the loops took together, failed ones included"),
    phases: z
      .object({
        sync: phase("File sync."),
        build: phase("Builds on the critical path: of those at the same time, the one that the loop waited for."),
        test: phase("Tests."),
        render: phase("Rendering manifests."),
        deploy: phase("The deploy, its status check aside."),
        check: phase("The status check."),
        other: phase("None of these ran."),
      })
      .describe("What the loops waited for. The times add up to waitedMs, and the shares to 1."),
    readyP50Ms: milliseconds("median wait from the change until it was ready, of loops that succeeded"),
    readyP90Ms: milliseconds("90th percentile of the same"),
    readyP99Ms: milliseconds("99th percentile of the same"),
  })
  .describe("How long developers wait for their loops; with the columns that were grouped by.");

export const failureStats = z
  .object({
    ...ofCause,
    ...grouped,
    failures: count64("Causes: a failed loop counts once, by what failed in it first"),
    developers: count64("Developers who had them"),
  })
  .describe("What fails; with the columns that were grouped by.");

export const greenStats = z
  .object({
    ...ofCause,
    ...grouped,
    red: count64("How often a source went red: a loop failed after a good one"),
    stillRed: count64("Of these, without a good loop since"),
    redP50Ms: milliseconds("median time from the failure to the next good loop"),
    redP90Ms: milliseconds("90th percentile of the same"),
    loopsBetween: count64("Failed loops in between: what was tried"),
  })
  .describe("How long it takes until all is good again; with the columns that were grouped by.");

export const flakeStats = z
  .object({
    artifact: name,
    ...grouped,
    builds: count64("Builds that ran: succeeded or failed"),
    failed: count64("Of these, failed"),
    flakes: count64("Of these, flakes: the artifact's next build, in the same configuration, succeeded"),
    flakeRate: z.number().min(0).max(1).describe("flakes / builds; 0 when nothing was built."),
    developers: count64("Developers with a flake"),
  })
  .describe("How often builds fail that the next one does not repeat; with the columns that were grouped by.");

export const commandStats = z
  .object({
    command: name,
    machine: name,
    box: name,
    provider: name,
    session: name,
    position: name,
    ...grouped,
    runs: count64("Commands that Vagrant ran"),
    failed: count64("Of these, failed"),
    p50Ms: milliseconds("median duration"),
    p90Ms: milliseconds("90th percentile of the duration"),
  })
  .describe("How long Vagrant's commands take; with the columns that were grouped by.");
