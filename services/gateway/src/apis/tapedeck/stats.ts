import type { BuildStats, BuildStatsRequest, Stats } from "@tapedeck/proto/tapedeck/v1/query";
import type { QueryClient } from "../../query-client.ts";
import type { AnswerOf } from "./answers.ts";
import type { List } from "./list.ts";
import type { ListContext } from "./list-request.ts";
import { filterOf, type groups, type ParametersOf } from "./parameters.ts";
import { between, labelsOf } from "./read-parameters.ts";

export type StatsLists = {
  readonly buildStats: List<"buildStats", AnswerOf<"BuildStats">>;
  readonly loopStats: List<"loopStats", AnswerOf<"LoopStats">>;
  readonly failureStats: List<"failureStats", AnswerOf<"FailureStats">>;
  readonly greenStats: List<"greenStats", AnswerOf<"GreenStats">>;
  readonly flakeStats: List<"flakeStats", AnswerOf<"FlakeStats">>;
  readonly commandStats: List<"commandStats", AnswerOf<"CommandStats">>;
};

/** Statistics as JSON: one item for each group. */
export function statsApi(query: Pick<QueryClient, "buildStats" | "stats">): StatsLists {
  const counted = async <Item>(
    about: string,
    [context, parameters]: readonly [ListContext, StatsParameters],
    json: (stats: Stats) => Item,
  ) => {
    const { items, position } = await query.stats(about, requestOf(context, parameters));
    return { items: items.map(json), position };
  };
  return {
    async buildStats(context, parameters) {
      const { items, position } = await query.buildStats(requestOf(context, parameters));
      return { items: items.map(buildStatsJson), position };
    },
    loopStats: (...call) => counted("loops", call, loopStatsJson),
    failureStats: (...call) => counted("failures", call, failureStatsJson),
    greenStats: (...call) => counted("green", call, greenStatsJson),
    flakeStats: (...call) => counted("flakes", call, flakeStatsJson),
    commandStats: (...call) => counted("commands", call, commandStatsJson),
  };
}

type StatsParameters = ParametersOf<"loopStats"> & { readonly artifact?: readonly string[] | undefined };

function requestOf(
  { workspace, minPosition = "" }: ListContext,
  parameters: StatsParameters,
): Partial<BuildStatsRequest> {
  const { developers = [], projects = [] } = filterOf({ developer: parameters.developer, project: parameters.project });
  return {
    workspace,
    group: parameters.group ?? [],
    zone: parameters.zone ?? "",
    ...between(parameters),
    developers: [...developers],
    projects: [...projects],
    artifacts: [...(parameters.artifact ?? [])],
    labels: labelsOf(parameters.label ?? []),
    min_position: minPosition,
  };
}

function buildStatsJson(stats: BuildStats): AnswerOf<"BuildStats"> {
  return {
    ...groupJson(stats.group),
    count: String(stats.count),
    failed: String(stats.failed),
    failureRate: stats.failure_rate,
    p50Ms: wholeJson(stats.p50_ms),
    p90Ms: wholeJson(stats.p90_ms),
    p99Ms: wholeJson(stats.p99_ms),
    cached: String(stats.cached),
    canceled: String(stats.canceled),
    unknown: String(stats.unknown),
  };
}

function loopStatsJson({ group, figures }: Stats): AnswerOf<"LoopStats"> {
  const { loops = 0, overtaken = 0 } = figures;
  return {
    ...groupJson(group),
    loops: String(loops),
    failed: countJson(figures.failed),
    overtaken: String(overtaken),
    overtakenShare: loops === 0 ? 0 : overtaken / loops,
    waitedMs: countJson(figures.waited_ms),
    phases: phasesJson(figures),
    readyP50Ms: wholeJson(figures.ready_p50_ms),
    readyP90Ms: wholeJson(figures.ready_p90_ms),
    readyP99Ms: wholeJson(figures.ready_p99_ms),
  };
}

function phasesJson(figures: Stats["figures"]): AnswerOf<"LoopStats">["phases"] {
  const { waited_ms: all = 0 } = figures;
  const phase = (name: PhaseName) => {
    const waited = figures[`${name}_ms`] ?? 0;
    return { waitedMs: countJson(waited), share: all === 0 ? 0 : waited / all };
  };
  return {
    sync: phase("sync"),
    build: phase("build"),
    test: phase("test"),
    render: phase("render"),
    deploy: phase("deploy"),
    check: phase("check"),
    other: phase("other"),
  };
}

type PhaseName = keyof AnswerOf<"LoopStats">["phases"];

function failureStatsJson({ group, figures }: Stats): AnswerOf<"FailureStats"> {
  return { ...groupJson(group), failures: countJson(figures.failures), developers: countJson(figures.developers) };
}

function greenStatsJson({ group, figures }: Stats): AnswerOf<"GreenStats"> {
  return {
    ...groupJson(group),
    red: countJson(figures.red),
    stillRed: countJson(figures.still_red),
    redP50Ms: wholeJson(figures.red_p50_ms),
    redP90Ms: wholeJson(figures.red_p90_ms),
    loopsBetween: countJson(figures.loops_between),
  };
}

function flakeStatsJson({ group, figures }: Stats): AnswerOf<"FlakeStats"> {
  const { builds = 0, flakes = 0 } = figures;
  return {
    ...groupJson(group),
    builds: String(builds),
    failed: countJson(figures.failed),
    flakes: String(flakes),
    flakeRate: builds === 0 ? 0 : flakes / builds,
    developers: countJson(figures.developers),
  };
}

function commandStatsJson({ group, figures }: Stats): AnswerOf<"CommandStats"> {
  return {
    ...groupJson(group),
    runs: countJson(figures.runs),
    failed: countJson(figures.failed),
    p50Ms: wholeJson(figures.p50_ms),
    p90Ms: wholeJson(figures.p90_ms),
  };
}

const label = "label.";

type GroupName = (typeof groups)[keyof typeof groups][number];
type Grouped = { readonly [Name in GroupName]?: string } & { readonly labels?: Record<string, string> };

/** Labels have any names, so they are kept apart from the columns. */
function groupJson(group: Readonly<Record<string, string>>): Grouped {
  const entries = Object.entries(group);
  const labels = entries.flatMap(([name, value]) =>
    name.startsWith(label) ? [[name.slice(label.length), value]] : [],
  );
  return {
    ...Object.fromEntries(entries.filter(([name]) => !name.startsWith(label))),
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
  };
}

function countJson(count = 0): string {
  return String(count);
}

/** A percentile may lie between two rows. */
function wholeJson(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms);
}
