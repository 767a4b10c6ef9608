import type { ServiceRegistry } from "@tapedeck/shared/service/metrics";
import type { QueryConfig } from "../config.ts";
import { unlessSilent } from "../db/away.ts";
import type { Database } from "../db/database.ts";
import { bucketBounds } from "../views/totals/buckets.ts";
import { allProjects } from "../views/totals/totals.ts";
import { type Chosen, chooseInRoom } from "./choose-in-room.ts";
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
  const [all, used] = await unlessSilent(
    tables,
    Promise.all([workspaceTotals(tables, names), by === "project" ? usedProjects(tables, names, series) : []]),
  );
  // The sums of many workspaces leave half of the room to projects.
  const own = [...Map.groupBy(all, ({ workspace }) => workspace).values()];
  const ofWorkspaces = chooseInRoom(own, by === "project" ? series / 2 : series, (totals) => ({
    counters: totals.filter(isOperation).length,
    histograms: totals.filter(isTimed).length,
  }));
  const counts = ofWorkspaces.counted.flat().filter(isOperation).map(countOf);
  const text = familiesOf(workspaceFamilies, counts, ofWorkspaces.timed.flat());
  const workspacesText = gaugeOf("workspaces", ofWorkspaces, own.length);
  if (by === "workspace") return text + workspacesText;
  const ofProjects = chooseInRoom(used, series - ofWorkspaces.series, (project) => ({
    counters: project.counts === "" ? 0 : project.counts.split(",").length,
    histograms: project.timed,
  }));
  const times = await unlessSilent(tables, projectTimes(tables, ofProjects.timed));
  return [
    text,
    familiesOf(projectFamilies, ofProjects.counted.map(countsOf), times),
    workspacesText,
    gaugeOf("projects", ofProjects, used[0]?.all ?? 0),
  ].join("");
}

const isOperation = ({ kind }: Pick<TotalKey, "kind">) => kind !== "wait";

/** What was canceled says nothing about how long something takes. */
const isTimed = ({ timed, outcome }: Total) => timed > 0 && ["", "succeeded", "failed"].includes(outcome);

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

const ofThose = "of the projects used last (see tapedeck_query_metrics_projects)";

const projectFamilies: Families = {
  counts: { name: "tapedeck_operations_total", help: `Operations that ended, ${ofThose}.` },
  durations: {
    name: "tapedeck_operation_duration_seconds",
    help: `How long operations took that succeeded or failed, ${ofThose}.`,
  },
  waits: { name: "tapedeck_wait_seconds", help: `How long dev loops waited for each phase, ${ofThose}.` },
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
  if (!isTimed(total)) return "";
  const { kind, outcome, phase, timed, sumMs, buckets } = total;
  const labels = `${placeOf(total)}${isOperation(total) ? `kind="${kind}",outcome="${outcome}"` : `phase="${phase}"`}`;
  const lines = bounds.map((le, index) => `${name}_bucket{${labels},le="${le}"} ${buckets[index] ?? timed}\n`);
  return `${lines.join("")}${name}_sum{${labels}} ${sumMs / 1_000}\n${name}_count{${labels}} ${timed}\n`;
}

const gauges = {
  projects: "tapedeck_query_metrics_projects",
  workspaces: "tapedeck_query_metrics_workspaces",
} as const;

/** Says how many of all the page has, and how much of them. */
function gaugeOf(what: keyof typeof gauges, { counted, timed }: Chosen<unknown>, all: number): string {
  const name = gauges[what];
  const help = `The ${what} of which this page has all figures, counts without durations, or none, as query.metrics.series allows.`;
  const has = { all: timed.length, counts: counted.length - timed.length, none: all - counted.length };
  const lines = Object.entries(has).map(([some, value]) => `${name}{service="query",has="${some}"} ${value}\n`);
  return head({ name, help }, "gauge") + lines.join("");
}
