import type { BuildStats, BuildStatsRequest } from "@tapedeck/proto/tapedeck/v1/query";
import type { QueryClient } from "../../query-client.ts";
import { type ListContext, placed } from "./list-request.ts";
import type { Page } from "./lists.ts";
import { filterOf, type StatsParameters } from "./parameters.ts";
import { between, labelsOf } from "./read-parameters.ts";
import { type Figures, type StatsKind, type StatsName, statsKinds } from "./schemas/stats.ts";
import { refuseGroupedByDeveloper } from "./side-by-side.ts";

/** Statistics as JSON: one item for each group. */
export type StatsApi = (context: ListContext, name: StatsName, parameters: StatsParameters) => Promise<Page<object>>;

export type StatsDeps = {
  readonly query: Pick<QueryClient, "buildStats" | "stats">;
  /** Whether they can be grouped by developers. */
  readonly compareDevelopers: boolean;
};

export function statsApi({ query, compareDevelopers }: StatsDeps): StatsApi {
  return async (context, name, parameters) => {
    if (!compareDevelopers) refuseGroupedByDeveloper(parameters);
    const request = requestOf(context, parameters);
    const { items, position } = await (name === "builds" ? builds(query, request) : query.stats(name, request));
    return { items: items.map(({ group, figures }) => rowJson(statsKinds[name], group, figures)), position };
  };
}

/** Query has a message of its own for the figures of builds. */
async function builds(query: Pick<QueryClient, "buildStats">, request: Partial<BuildStatsRequest>) {
  const { items, position } = await query.buildStats(request);
  return {
    items: items.map(({ group, _unknownFields: _, ...figures }: BuildStats) => ({ group, figures })),
    position,
  };
}

function requestOf(context: ListContext, parameters: StatsParameters): Partial<BuildStatsRequest> {
  const { developer, project, upstream, source, session } = parameters;
  const filter = placed(filterOf({ developer, project, upstream, source, session }), context);
  const { developers = [], projects = [], upstreams = [], sources = [], sessions = [] } = filter;
  return {
    workspace: context.workspace,
    group: parameters.group ?? [],
    zone: parameters.zone ?? "",
    ...between(parameters),
    developers: [...developers],
    projects: [...projects],
    upstreams: [...upstreams],
    sources: [...sources],
    sessions: [...sessions],
    artifacts: [...(parameters.artifact ?? [])],
    labels: labelsOf(parameters.label ?? []),
    min_position: context.minPosition ?? "",
  };
}

function rowJson(kind: StatsKind, group: Readonly<Record<string, string>>, figures: Figures): object {
  const numbers = Object.entries(kind.figures).map(([name, { json }]) => [name, json(figures, nameInQuery(name))]);
  return { ...groupJson(group), ...Object.fromEntries(numbers) };
}

/** "readyP50Ms" is "ready_p50_ms". */
function nameInQuery(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const label = "label.";

/** Labels have any names, so they are kept apart from the columns. */
function groupJson(group: Readonly<Record<string, string>>): object {
  const entries = Object.entries(group);
  const labels = entries.flatMap(([name, value]) =>
    name.startsWith(label) ? [[name.slice(label.length), value]] : [],
  );
  return {
    ...Object.fromEntries(entries.filter(([name]) => !name.startsWith(label))),
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
  };
}
