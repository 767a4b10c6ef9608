import { ownValue } from "@tapedeck/shared/own-value";
import { z } from "zod";
import { count as countField, time } from "./fields.ts";

// One table of the statistics. Query counts them, and the HTTP API has a path, parameters and an answer for each.

const name = z.string().optional();
const date = z.string().meta({ format: "date" }).optional();

/** The columns that every kind of statistics can be grouped by. */
const grouped = {
  developer: name,
  project: name,
  source: name,
  hour: time("Start of the hour.").optional(),
  day: date,
  week: date.describe("Its Monday."),
  time: time("When it began; of failures, when it failed.").optional(),
  loop: name.describe("`<session>.<runner>.<loop>`; outside of loops both numbers are 0."),
  labels: z.record(z.string(), z.string()).optional().describe("Of `label.<name>`: empty where there is none."),
};
const ofCause = {
  phase: name.describe("What failed first: `build`, `test`, `deploy`, `check`, `command` …; empty: not known."),
  reason: name.describe("A short class of causes, such as `compile error`; empty: not known."),
  cause: name.describe("The causes of one kind: the reason and the line, without numbers, ids, paths and hashes."),
  errorCode: name,
  error: name,
  artifact: name,
};

/** The numbers of a row by query's names, such as `ready_p50_ms`. What is not known is absent. */
export type Figures = Readonly<Record<string, number | bigint | undefined>>;

type Figure<Json> = {
  readonly schema: z.ZodType<Json>;
  /** `name`: the figure's own in query. */
  readonly json: (figures: Figures, name: string) => Json;
};

export type StatsKind = {
  readonly summary: string;
  /** What a row is about. */
  readonly what: string;
  /** The name of a row's schema in the API's description. */
  readonly schema: string;
  /** The columns to group by that not every kind has. */
  readonly columns: Readonly<Record<string, z.ZodType>>;
  /** Its rows are about loops: they can be grouped by the loop, and filtered by artifacts. */
  readonly hasLoops: boolean;
  readonly figures: Readonly<Record<string, Figure<unknown>>>;
};

const count = (what: string): Figure<number> => ({
  schema: countField(`${what}.`),
  json: (figures, name) => Number(ownValue(figures, name) ?? 0),
});

/** A percentile may lie between two rows, so it is rounded. */
const milliseconds = (what: string): Figure<number | null> => ({
  schema: z.int().nullable().describe(`Milliseconds: ${what}; null without any.`),
  json: (figures, name) => {
    const ms = ownValue(figures, name);
    return ms === undefined ? null : Math.round(Number(ms));
  },
});

const untimed = (percentiles: string) =>
  count(
    `Of these, in ${percentiles}: their times can't both be right (1970, an end before the start), or one is not known`,
  );

const partOf = (what: string) => z.number().min(0).max(1).describe(what);
const shareOf = (part: number | bigint = 0, all: number | bigint = 0) =>
  Number(all) === 0 ? 0 : Number(part) / Number(all);
const share = (part: string, all: string, without: string): Figure<number> => ({
  schema: partOf(`${part} / ${all}; 0 ${without}.`),
  json: (figures) => shareOf(ownValue(figures, part), ownValue(figures, all)),
});

const phase = (what: string) =>
  z
    .object({
      waitedMs: countField("Milliseconds that all loops together waited for it."),
      share: partOf("This waitedMs / that of the loops; 0 when nothing was waited for."),
    })
    .describe(what);
const phases = z
  .object({
    sync: phase("File sync."),
    build: phase("Builds on the critical path: of those at the same time, the one that the loop waited for."),
    test: phase("Tests."),
    render: phase("Rendering manifests."),
    deploy: phase("The deploy without its status check."),
    check: phase("The status check."),
    other: phase("None of these ran."),
  })
  .describe("What the loops waited for. The times add up to waitedMs, and the shares to 1.");

export const statsKinds = {
  builds: {
    summary: "How long builds take, and how many fail",
    what: "How long builds take",
    schema: "BuildStats",
    columns: { artifact: name },
    hasLoops: true,
    figures: {
      count: count("Builds that ran: succeeded or failed"),
      failed: count("Of these, failed"),
      failureRate: share("failed", "count", "when nothing was built"),
      p50Ms: milliseconds("median of the builds that ran"),
      p90Ms: milliseconds("90th percentile of the builds that ran"),
      p99Ms: milliseconds("99th percentile of the builds that ran"),
      cached: count("Not counted above: found in the cache"),
      canceled: count("Not counted above: canceled"),
      unknown: count("Not counted above: the end was not observed"),
      untimed: untimed("no percentile"),
    },
  },
  loops: {
    summary: "How long developers wait for their loops, and how many fail or are overtaken",
    what: "How long developers wait for their loops",
    schema: "LoopStats",
    columns: {},
    hasLoops: true,
    figures: {
      loops: count("Loops that are over"),
      failed: count("Of these, failed"),
      overtaken: count("Of these, overtaken: the next change came before the loop was ready"),
      overtakenShare: share("overtaken", "loops", "without loops"),
      waitedMs: count("Milliseconds that all loops together took, failed ones included"),
      phases: {
        schema: phases,
        json: (figures) =>
          Object.fromEntries(
            Object.keys(phases.shape).map((name) => {
              const waited = Number(ownValue(figures, `${name}_ms`) ?? 0);
              return [name, { waitedMs: waited, share: shareOf(waited, figures.waited_ms) }];
            }),
          ),
      },
      readyP50Ms: milliseconds("median wait from the change until it was ready, of loops that succeeded"),
      readyP90Ms: milliseconds("90th percentile of the same"),
      readyP99Ms: milliseconds("99th percentile of the same"),
      untimed: untimed("no percentile, and not in waitedMs"),
    },
  },
  failures: {
    summary: "What fails, by its cause",
    what: "What fails",
    schema: "FailureStats",
    columns: ofCause,
    hasLoops: true,
    figures: {
      failures: count("Causes: a failed loop counts once, by what failed in it first"),
      developers: count("Developers who had them"),
    },
  },
  green: {
    summary: "How long it takes until all is good again",
    what: "How long it takes until all is good again",
    schema: "GreenStats",
    columns: ofCause,
    hasLoops: true,
    figures: {
      red: count("How often a source went red: a loop failed after a good one"),
      stillRed: count("Of these, without a good loop since"),
      redP50Ms: milliseconds("median time from the failure to the next good loop"),
      redP90Ms: milliseconds("90th percentile of the same"),
      loopsBetween: count("Failed loops in between: what was tried"),
    },
  },
  flakes: {
    summary: "How often builds fail that the next one does not repeat",
    what: "How often builds fail that the next one does not repeat",
    schema: "FlakeStats",
    columns: { artifact: name },
    hasLoops: true,
    figures: {
      builds: count("Builds that ran: succeeded or failed"),
      failed: count("Of these, failed"),
      flakes: count("Of these, flakes: the artifact's next build, in the same configuration, succeeded"),
      flakeRate: share("flakes", "builds", "when nothing was built"),
      developers: count("Developers with a flake"),
    },
  },
  commands: {
    summary: "How long Vagrant's commands take, and how many fail",
    what: "How long Vagrant's commands take",
    schema: "CommandStats",
    columns: { command: name, machine: name, box: name, provider: name, session: name, position: name },
    hasLoops: false,
    figures: {
      runs: count("Commands that Vagrant ran"),
      failed: count("Of these, failed"),
      p50Ms: milliseconds("median duration"),
      p90Ms: milliseconds("90th percentile of the duration"),
      untimed: untimed("no percentile"),
    },
  },
} as const satisfies Record<string, StatsKind>;

export type StatsName = keyof typeof statsKinds;
export const statsNames = Object.keys(statsKinds) as StatsName[];

export function statsRow({ what, columns, figures }: StatsKind): z.ZodType {
  const numbers = Object.entries(figures).map(([name, { schema }]) => [name, schema]);
  return z
    .object({ ...columns, ...grouped, ...Object.fromEntries(numbers) })
    .describe(`${what}; with the group-by columns.`);
}
