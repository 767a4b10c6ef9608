import type { ServiceRegistry } from "@tapedeck/shared/service/metrics";
import type { QueryConfig } from "../config.ts";
import type { Database } from "../db/database.ts";
import { bucketBounds } from "../views/totals/buckets.ts";
import { allProjects } from "../views/totals/totals.ts";
import { chooseProjects, seriesOf } from "./choose-projects.ts";
import {
  projectTimes,
  type Total,
  type TotalKey,
  type UsedProject,
  usedProjects,
  workspaceTotals,
} from "./read-totals.ts";

export type TotalMetricsOptions = {
  /** The tables; throws while there are none. */
  readonly database: () => Database;
  /**
   * The workspaces whose tables have caught up with their logs: sums that still grow towards the present would be taken for
   * new work.
   */
  readonly workspaces: () => Promise<readonly string[]>;
  readonly by: QueryConfig["metrics"]["by"];
  /** The most series. */
  readonly series: number;
};

/** Adds what is recorded to the page: operations, their durations, and waits, from the sums in the tables. */
export function addTotals(registry: ServiceRegistry, options: TotalMetricsOptions): void {
  // The other metrics are answered also while the tables can't be read.
  registry.addText(() => totalsPage(options).catch(() => ""));
}

async function totalsPage({ database, workspaces, by, series }: TotalMetricsOptions): Promise<string> {
  const [tables, names] = [database(), await workspaces()];
  const [all, used] = await Promise.all([
    workspaceTotals(tables, names),
    by === "project" ? usedProjects(tables, names, series) : [],
  ]);
  // The sums of many workspaces leave half of the room to projects.
  const ofWorkspaces = whileRoom(all, by === "project" ? series / 2 : series);
  const text = familiesOf(workspaceFamilies, ofWorkspaces.filter(isOperation).map(countOf), ofWorkspaces);
  if (by === "workspace") return text;
  const room = series - ofWorkspaces.reduce((sum, total) => sum + seriesOf(total), 0);
  const { counted, timed } = chooseProjects(used, room);
  const times = await projectTimes(tables, timed);
  const has = { all: timed.length, counts: counted.length - timed.length, none: (used[0]?.all ?? 0) - counted.length };
  return text + familiesOf(projectFamilies, counted.map(countsOf), times) + gaugeOf(has);
}

/** Whole workspaces, as many as there is room for. */
function whileRoom(totals: readonly Total[], room: number): readonly Total[] {
  let left = room;
  const chosen: Total[] = [];
  for (const own of Map.groupBy(totals, ({ workspace }) => workspace).values()) {
    left -= own.reduce((sum, total) => sum + seriesOf(total), 0);
    if (left < 0) break;
    chosen.push(...own);
  }
  return chosen;
}

const isOperation = ({ kind }: Pick<TotalKey, "kind">) => kind !== "wait";

type Family = { readonly name: string; readonly help: string };
type Families = Readonly<Record<"counts" | "durations" | "waits", Family>>;

const workspaceFamilies: Families = {
  counts: { name: "tapedeck_workspace_operations_total", help: "Operations that ended, by workspace." },
  durations: {
    name: "tapedeck_workspace_operation_duration_seconds",
    help: "How long operations took that succeeded or failed, by workspace.",
  },
  waits: { name: "tapedeck_workspace_wait_seconds", help: "How long dev loops waited for each phase, by workspace." },
};

const ofProjects = "of the projects used last (see tapedeck_query_metrics_projects)";

const projectFamilies: Families = {
  counts: { name: "tapedeck_operations_total", help: `Operations that ended, ${ofProjects}.` },
  durations: {
    name: "tapedeck_operation_duration_seconds",
    help: `How long operations took that succeeded or failed, ${ofProjects}.`,
  },
  waits: { name: "tapedeck_wait_seconds", help: `How long dev loops waited for each phase, ${ofProjects}.` },
};

/** `counts`: labels and values, in lines. */
function familiesOf(
  { counts, durations, waits }: Families,
  lines: readonly string[],
  totals: readonly Total[],
): string {
  const histogram = (family: Family, own: readonly Total[]) =>
    head(family, "histogram") + own.map((total) => histogramOf(family.name, total)).join("");
  const counters = lines.join("").replaceAll(/^\{/gm, `${counts.name}{`);
  return [
    head(counts, "counter") + counters,
    histogram(durations, totals.filter(isOperation)),
    histogram(
      waits,
      totals.filter((total) => !isOperation(total)),
    ),
  ].join("");
}

function head({ name, help }: Family, type: string): string {
  return `\n# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

/** Labels without their end, as of all metrics of query. */
function placeOf({ workspace, project }: Pick<TotalKey, "workspace" | "project">): string {
  const ofProject = project === allProjects ? "" : `project="${escaped(project)}",`;
  return `service="query",workspace="${escaped(workspace)}",${ofProject}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function countOf(total: Total): string {
  return `{${placeOf(total)}kind="${total.kind}",outcome="${total.outcome}"} ${total.count}\n`;
}

function countsOf(project: UsedProject): string {
  const place = placeOf(project);
  const lines = project.counts.split(",").map((text) => {
    const [kind, outcome, count] = text.split(" ");
    return `{${place}kind="${kind}",outcome="${outcome}"} ${count}\n`;
  });
  return lines.join("");
}

const bounds = [...bucketBounds.map((ms) => String(ms / 1_000)), "+Inf"];

function histogramOf(name: string, total: Total): string {
  const { kind, outcome, phase, timed, sumMs, buckets } = total;
  if (timed === 0 || !["", "succeeded", "failed"].includes(outcome)) return "";
  const labels = `${placeOf(total)}${isOperation(total) ? `kind="${kind}",outcome="${outcome}"` : `phase="${phase}"`}`;
  const lines = bounds.map((le, index) => `${name}_bucket{${labels},le="${le}"} ${buckets[index] ?? timed}\n`);
  return `${lines.join("")}${name}_sum{${labels}} ${sumMs / 1_000}\n${name}_count{${labels}} ${timed}\n`;
}

const projectsGauge = {
  name: "tapedeck_query_metrics_projects",
  help: "Projects of which this page has all figures, counts without durations, or none, as query.metrics.series allows.",
};

function gaugeOf(projects: Readonly<Record<"all" | "counts" | "none", number>>): string {
  const lines = Object.entries(projects).map(
    ([has, value]) => `${projectsGauge.name}{service="query",has="${has}"} ${value}\n`,
  );
  return head(projectsGauge, "gauge") + lines.join("");
}
