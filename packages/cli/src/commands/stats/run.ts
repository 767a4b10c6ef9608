import { apiAt, type Page } from "../../api/api.ts";
import { durationText } from "../../display/durations.ts";
import { table } from "../../display/table.ts";

export type StatsBuildsOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly group: readonly string[];
  readonly developer?: readonly string[];
  readonly project?: readonly string[];
  readonly artifact?: readonly string[];
  readonly source?: string;
  readonly since?: string;
  readonly until?: string;
};

type BuildStats = Readonly<Record<string, string>> & {
  readonly count: string;
  readonly failed: string;
  readonly failureRate: number;
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  readonly p99Ms: number | null;
  readonly cached: string;
};

export async function statsBuilds(options: StatsBuildsOptions): Promise<void> {
  const { url, json, group, developer, project, artifact, source, since: from, until: to } = options;
  // A source in full has its workspace before it.
  const parts = source?.split("/") ?? [];
  const [ofDeveloper, ofProject] = parts.length === 4 ? parts.slice(1) : parts;
  const parameters = {
    ...{ group: group.join(","), from, to, artifact },
    developer: developer ?? ofDeveloper,
    project: project ?? ofProject,
  };
  const page = await apiAt(url).get<Page<BuildStats>>("/api/v1/stats/builds", parameters);
  if (json) {
    process.stdout.write(`${JSON.stringify(page)}\n`);
    return;
  }
  if (page.items.length === 0) {
    const isAll = [from, to, developer, project, artifact, source].every((one) => one === undefined);
    console.log(isAll ? "No builds yet." : "No matching builds.");
    return;
  }
  const numbers = ["BUILDS", "FAILED", "P50", "P90", "P99", "CACHED"].map((title) => ({
    title,
    align: "right" as const,
  }));
  const rows = page.items.map((stats) => [
    ...group.map((name) => stats[name] ?? ""),
    stats.count,
    stats.failed === "0" ? "0" : `${stats.failed} (${Math.round(stats.failureRate * 100)} %)`,
    ...[stats.p50Ms, stats.p90Ms, stats.p99Ms].map((ms) => (ms === null ? "-" : durationText(ms))),
    stats.cached,
  ]);
  console.log(table([...group.map((name) => ({ title: name.toUpperCase() })), ...numbers], rows));
}
