import { ownZone, zoneNamed } from "./zone.ts";

// All that a visitor chooses on Trends is in its URL.

export const ranges = { "24h": 1, "7d": 7, "30d": 30, "90d": 90, "1y": 365 } as const;
export type TrendsRange = keyof typeof ranges;

export const groups = ["hour", "day", "week"] as const;
export type TrendsGroup = (typeof groups)[number];

export const charts = [
  "sides",
  "wait",
  "waits",
  "green",
  "overtaken",
  "failures",
  "slow",
  "flaky",
  "commands",
] as const;
export type ChartName = (typeof charts)[number];

/** A selection in a chart, to see the loops behind it. */
export type Pick = {
  readonly chart: ChartName;
  /** Names of bins, both inclusive; undefined: all of the range. */
  readonly since?: string;
  readonly until?: string;
  /**
   * A row: a developer or project beside others, a phase, a cause of failures as `causeKey` names it,
   * "project/artifact", or a command as `commandKey` names it.
   */
  readonly of?: string;
};

/** What can stand side by side. */
export const sides = ["developer", "project"] as const;
export type TrendsSide = (typeof sides)[number];

export type Choice = {
  /** Days up to today; or the days from and to, both inclusive. */
  readonly range: TrendsRange | { readonly from: string; readonly to: string };
  readonly group: TrendsGroup;
  readonly zone: string;
  readonly developers: readonly string[];
  readonly projects: readonly string[];
  /** "name=value"; all of them must match. */
  readonly labels: readonly string[];
  /** Developers or projects stand side by side; undefined: all are counted together. */
  readonly by?: TrendsSide;
  readonly pick?: Pick;
  /** The panels whose SQL is open. */
  readonly sql: readonly string[];
};

const aDay = /^20\d{2}-\d{2}-\d{2}$/;

/** Whether it is a day that can be shown: of this century, and not one of a year that is still being typed. */
export function isDay(day: string): boolean {
  const date = new Date(day);
  // `Date` takes 30 February for 2 March.
  return aDay.test(day) && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}
const defaultGroup: Readonly<Record<TrendsRange, TrendsGroup>> = {
  "24h": "hour",
  "7d": "day",
  "30d": "day",
  "90d": "week",
  "1y": "week",
};

export function groupFor(range: Choice["range"]): TrendsGroup {
  if (typeof range === "string") return defaultGroup[range];
  const days = (Date.parse(range.to) - Date.parse(range.from)) / 86_400_000;
  return days < 2 ? "hour" : days < 62 ? "day" : "week";
}

/** Most hours that are shown side by side, and asked for. */
const maxDaysByHour = 14;

/** Reads a URL's query; missing or wrong values get the default. */
export function choiceOf(search: string): Choice {
  const query = new URLSearchParams(search);
  const text = (name: string) => query.get(name) ?? "";
  const range = rangeOf(text("range"), text("from"), text("to"));
  const group = groups.find((name) => name === text("group")) ?? groupFor(range);
  // A source is known by its developer and project: the loops of Trends are Skaffold's.
  const sources = query.getAll("source").map((source) => source.split("/").slice(0, 2));
  const pick = pickOf(query);
  const by = sides.find((name) => name === text("by"));
  return {
    range,
    group: group === "hour" && daysOf(range) > maxDaysByHour ? "day" : group,
    zone: text("zone") === "" ? ownZone : zoneNamed(text("zone")),
    developers: unique([...query.getAll("developer"), ...sources.map(([developer = ""]) => developer)]),
    projects: unique([...query.getAll("project"), ...sources.map(([, project = ""]) => project)]),
    labels: unique(query.getAll("label").filter(isLabel)),
    ...(by && { by }),
    sql: unique(query.getAll("sql")),
    ...(pick && { pick }),
  };
}

/** Whether it is a label's name with a value. */
export function isLabel(label: string): boolean {
  return /^[^=]+=/.test(label);
}

/** Whether a URL's query says which time is shown. */
export function hasRange(search: string): boolean {
  const query = new URLSearchParams(search);
  return query.has("range") || query.has("from");
}

/**
 * A week where something ran in the week before too, so that what is new can be seen; else the shortest range that holds
 * everything, at most a month; of older loops the shortest that holds any. `ages`: of the days on which something ran, 0
 * for today.
 */
export function fittedRange(ages: readonly number[]): TrendsRange {
  const names = Object.keys(ranges) as TrendsRange[];
  if (ages.length === 0) return "30d";
  const [newest, oldest] = [Math.min(...ages), Math.max(...ages)];
  const week = ranges["7d"];
  if (newest < week && ages.some((age) => age >= week && age < 2 * week)) return "7d";
  const whole = names.find((name) => oldest < ranges[name]);
  if (whole !== undefined && ranges[whole] <= ranges["30d"]) return whole;
  if (newest < ranges["30d"]) return "30d";
  return names.find((name) => newest < ranges[name]) ?? "30d";
}

function rangeOf(name: string, from: string, to: string): Choice["range"] {
  if (isDay(from) && isDay(to)) return from <= to ? { from, to } : { from: to, to: from };
  return (Object.keys(ranges) as TrendsRange[]).find((known) => known === name) ?? "30d";
}

function daysOf(range: Choice["range"]): number {
  return typeof range === "string" ? ranges[range] : (Date.parse(range.to) - Date.parse(range.from)) / 86_400_000 + 1;
}

function pickOf(query: URLSearchParams): Pick | undefined {
  const chart = charts.find((name) => name === query.get("pick"));
  if (chart === undefined) return undefined;
  const [since, until, of] = ["since", "until", "of"].map((name) => query.get(name) || undefined);
  return {
    chart,
    ...(since !== undefined && { since, until: until ?? since }),
    ...(of !== undefined && { of }),
  };
}

function unique(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((name) => name !== ""))];
}

/** The path that shows a choice to any reader, in any time zone. */
export function trendsPath({ range, group, zone, developers, projects, labels, by, pick, sql }: Choice): string {
  const query = new URLSearchParams();
  if (typeof range === "string") query.set("range", range);
  else for (const [name, day] of Object.entries(range)) query.set(name, day);
  query.set("group", group);
  query.set("zone", zone);
  for (const developer of developers) query.append("developer", developer);
  for (const project of projects) query.append("project", project);
  for (const label of labels) query.append("label", label);
  if (by !== undefined) query.set("by", by);
  if (pick !== undefined) {
    query.set("pick", pick.chart);
    if (pick.since !== undefined) query.set("since", pick.since);
    if (pick.until !== undefined && pick.until !== pick.since) query.set("until", pick.until);
    if (pick.of !== undefined) query.set("of", pick.of);
  }
  for (const panel of sql) query.append("sql", panel);
  return `/trends?${String(query).replaceAll("%2F", "/").replaceAll("%3A", ":")}`;
}
