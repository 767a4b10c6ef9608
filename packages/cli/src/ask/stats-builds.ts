import type { StatsBuildsOptions } from "../commands/stats.ts";
import { apiAt, type Page } from "./api.ts";
import { durationText } from "./durations.ts";
import { table } from "./table.ts";

type BuildStats = Readonly<Record<string, string>> & {
  readonly count: string;
  readonly failed: string;
  readonly failureRate: number;
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  readonly p99Ms: number | null;
  readonly cached: string;
};

const day = 86_400_000;

export async function statsBuilds(options: StatsBuildsOptions): Promise<void> {
  const { url, json, group, developer, project, artifact, days, to } = options;
  const from = options.from ?? (days === undefined ? undefined : new Date(Date.now() - days * day).toISOString());
  const parameters = { group: group.join(","), from, to, developer, project, artifact };
  const page = await apiAt(url).get<Page<BuildStats>>("/api/v1/stats/builds", parameters);
  if (json) {
    process.stdout.write(`${JSON.stringify(page)}\n`);
    return;
  }
  if (page.items.length === 0) {
    console.log("No builds yet.");
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
