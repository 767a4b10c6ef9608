import { BuildStatsRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { endOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { ProjectedPosition } from "../../projecting/progress.ts";
import { sumBuildDays } from "../../projecting/sum-build-days.ts";
import { migrated } from "../../testing/migrated.ts";
import { folds } from "../../views/folds.ts";
import type { ApiDeps } from "../deps.ts";
import { buildStats } from "./build-stats.ts";
import { stats } from "./stats.ts";
import { fillStats } from "./testing/stats-rows.ts";

// Every kind of statistics, in every grouping, is what a query of SQL's views says.

const cleanup = new AsyncDisposableStack();
let database: Database;
let deps: ApiDeps;

beforeAll(async () => {
  const fresh = cleanup.use(await freshDatabase(migrated));
  database = cleanup.use(openDatabase({ url: fresh.url, connections: 1 }));
  await sql`
    insert into checkpoint (workspace, projection, epoch, position)
    select name, '', 'e', ${endOf(1)} from unnest(array['acme', 'small', 'large']) as name`.execute(database.db);
  await sql`insert into workspaces select workspace, epoch from checkpoint`.execute(database.db);
  await fillStats(database);
  const log = () => expect.fail("the log was asked");
  deps = { workspace: "acme", database: () => database, log, progress: new ProjectedPosition(), folds };
});
afterAll(() => cleanup.disposeAsync());

type Kind = {
  /** A relation of the views, whose rows the figures count. */
  readonly from: string;
  readonly at: string;
  /** By the API's name: the column of the relation. */
  readonly columns: Readonly<Record<string, string>>;
  readonly figures: Readonly<Record<string, string>>;
};

const percentile = (part: number, column: string, where = "true") =>
  `percentile_cont(${part}) within group (order by ${column}) filter (where ${where})`;
const count = (where = "true") => `count(*) filter (where ${where})::float8`;
const sum = (column: string) => `coalesce(sum(${column}), 0)::float8`;

const ran = "outcome in ('succeeded', 'failed') and not cache_hit";
const ownBuilds = "(select * from build_times where not injected)";
const cause = { phase: "phase", errorCode: "error_code", error: "error" };

const kinds: Readonly<Record<string, Kind>> = {
  builds: {
    from: ownBuilds,
    at: "started_at",
    columns: { artifact: "artifact" },
    figures: {
      count: count(ran),
      failed: count(`${ran} and outcome = 'failed'`),
      cached: count("cache_hit"),
      canceled: count("outcome = 'canceled'"),
      unknown: count("outcome = 'unknown'"),
      untimed: count(`${ran} and duration_ms is null`),
      p50_ms: percentile(0.5, "duration_ms", ran),
      p90_ms: percentile(0.9, "duration_ms", ran),
      p99_ms: percentile(0.99, "duration_ms", ran),
    },
  },
  loops: {
    from: "loop_times",
    at: "started_at",
    columns: {},
    figures: {
      loops: count(),
      failed: count("outcome = 'failed'"),
      overtaken: count("overtaken"),
      waited_ms: sum("duration_ms"),
      ...Object.fromEntries(
        ["sync", "build", "test", "render", "deploy", "check", "other"].map((phase) => [
          `${phase}_ms`,
          // A share is a part of the loop, so these are the same milliseconds.
          `round(${sum(`${phase}_share * duration_ms`)})`,
        ]),
      ),
      ready_p50_ms: percentile(0.5, "ready_ms"),
      ready_p90_ms: percentile(0.9, "ready_ms"),
      ready_p99_ms: percentile(0.99, "ready_ms"),
      untimed: count("outcome <> 'unknown' and duration_ms is null"),
    },
  },
  failures: {
    from: "failures",
    at: "failed_at",
    columns: { ...cause, artifact: "case phase when 'build' then subject else '' end" },
    figures: { failures: count(), developers: "count(distinct developer)::float8" },
  },
  green: {
    from: "time_to_green",
    at: "failed_at",
    columns: {
      ...cause,
      phase: "failed_phase",
      artifact: "case failed_phase when 'build' then failed_subject else '' end",
    },
    figures: {
      red: count(),
      still_red: count("green_at is null"),
      red_p50_ms: percentile(0.5, "red_ms"),
      red_p90_ms: percentile(0.9, "red_ms"),
      loops_between: sum("loops_between"),
    },
  },
  flakes: {
    from: `(select *, outcome = 'failed' and coalesce(lead(outcome) over (
        partition by session, runner, artifact order by loop, start_position) = 'succeeded', false) as is_flake
      from ${ownBuilds} own where ${ran})`,
    at: "started_at",
    columns: { artifact: "artifact" },
    figures: {
      builds: count(),
      failed: count("outcome = 'failed'"),
      flakes: count("is_flake"),
      developers: "(count(distinct developer) filter (where is_flake))::float8",
    },
  },
  commands: {
    from: "vagrant_command_times",
    at: "started_at",
    columns: {
      command: "command",
      machine: "machine",
      box: "box",
      provider: "provider",
      session: "session",
      position: "start_position_text",
    },
    figures: {
      runs: count(),
      failed: count("outcome = 'failed'"),
      p50_ms: percentile(0.5, "duration_ms"),
      p90_ms: percentile(0.9, "duration_ms"),
      untimed: count("outcome <> 'unknown' and duration_ms is null"),
    },
  },
};

/** The columns that all kinds have. The arithmetic is not that of the API. */
function columnsOf({ at, columns }: Kind, zone: string): Readonly<Record<string, string>> {
  const there = `(${at} at time zone '${zone}')`;
  const ahead = `extract(epoch from ${there} - (${at} at time zone 'UTC'))`;
  const hour = `to_timestamp(floor((extract(epoch from ${at}) + ${ahead}) / 3600) * 3600 - ${ahead})`;
  return {
    developer: "developer",
    project: "project",
    source: "source",
    hour: `to_char(${hour} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
    day: `${there}::date::text`,
    week: `(${there}::date - (extract(isodow from ${there})::int - 1))::text`,
    "label.branch": "coalesce(labels ->> 'branch', '')",
    "label.none": "''",
    ...columns,
  };
}

type MatrixRow = { readonly group: Readonly<Record<string, string>> } & Readonly<Record<string, unknown>>;

async function bySql(kind: Kind, workspace: string, group: readonly string[], zone: string, range: string) {
  const columns = columnsOf(kind, zone);
  const keys = group.map((name) => `coalesce(${columns[name]}, '')`);
  const figures = Object.entries(kind.figures).map(([name, figure]) => `${figure} as ${name}`);
  const { rows } = await sql
    .raw<MatrixRow>(
      `select jsonb_build_object(${group.flatMap((name, index) => [`'${name}'`, keys[index]]).join(", ")}) as "group",
        ${figures.join(", ")}
      from ${kind.from} t where workspace = '${workspace}' ${range}
      ${keys.length === 0 ? "" : `group by ${keys.join(", ")}`}`,
    )
    .execute(database.db);
  return sorted(rows.map((row) => ({ ...row })));
}

async function byApi(about: string, request: Partial<BuildStatsRequest>) {
  const of = { ...BuildStatsRequest.fromPartial({}), ...request };
  if (about === "builds") {
    const { items } = await buildStats(deps, of);
    return sorted(
      items.map(({ failure_rate: _, group, ...figures }) => ({
        group,
        ...Object.fromEntries(
          Object.entries(figures).map(([name, value]) => [name, value === undefined ? null : Number(value)]),
        ),
      })),
    );
  }
  const { items } = await stats(deps, { about, of });
  // A figure that is not known is absent.
  const names = Object.keys(kinds[about]?.figures ?? {});
  return sorted(
    items.map(({ group, figures }) => ({
      group,
      ...Object.fromEntries(names.map((name) => [name, figures[name] ?? null])),
    })),
  );
}

function sorted(rows: readonly MatrixRow[]): readonly MatrixRow[] {
  const key = ({ group }: MatrixRow) => JSON.stringify(Object.entries(group).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** A day after all builds. */
const before = "2027-01-01";
const zones = ["Europe/Berlin", "Asia/Kolkata"];
const times = ["hour", "day", "week"].flatMap((name) => zones.map((zone) => [[name], zone] as const));
/** A week around the night in which Berlin's clocks go back, from and to moments within an hour. */
const week = { from: "2026-10-21T10:17:31Z", to: "2026-10-28T03:59:59Z" };

const time = (text: string) => ({ seconds: BigInt(Date.parse(text) / 1_000), nanos: 0 });
/** The API's figures are numbers of JavaScript: two sums of the same may differ in the last digit. */
const rounded = (rows: readonly MatrixRow[]) =>
  rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, typeof value === "number" ? Number(value.toFixed(6)) : value]),
    ),
  );

describe.each(Object.entries(kinds))("%s", (about, kind) => {
  const own = Object.keys(kind.columns).map((name) => [[name], "UTC"] as const);
  it.each<readonly [readonly string[], string]>([
    [[], "UTC"],
    ...times,
    ...["developer", "project", "source", "label.branch", "label.none"].map((name) => [[name], "UTC"] as const),
    ...own,
    [["developer", "day", "label.branch"], "Europe/Berlin"],
    [["project", "week", ...Object.keys(kind.columns).slice(0, 1)], "Asia/Kolkata"],
  ])("by %j in %s", async (group, zone) => {
    const range = `and ${kind.at} >= '${week.from}' and ${kind.at} < '${week.to}'`;
    const within = { workspace: "small", group: [...group], zone };
    const expected = await bySql(kind, "small", group, zone, "");
    // Several rows, of which some say something.
    if (group.length > 0 && group[0] !== "label.none") expect(expected.length).toBeGreaterThan(1);
    // No time is not a time: rows without one are in no hour, day or week, but those of "all".
    expect(rounded(await byApi(about, within))).toEqual(rounded(expected));
    expect(rounded(await byApi(about, { ...within, from: time(week.from), to: time(week.to) }))).toEqual(
      rounded(await bySql(kind, "small", group, zone, range)),
    );
  });
});

describe("builds of more than 50,000", () => {
  const kind = kinds.builds as Kind;
  const percentiles = ["p50_ms", "p90_ms", "p99_ms"];

  it.each<readonly [readonly string[], string, boolean]>([
    [[], "UTC", false],
    [["artifact"], "UTC", false],
    [["project"], "UTC", false],
    [["project", "artifact"], "UTC", false],
    [["developer"], "UTC", true],
    [["source"], "UTC", true],
    [["label.branch"], "UTC", true],
    ...times.map(([group, zone]) => [group, zone, true] as const),
  ])("by %j in %s: counts are equal, percentiles exact: %j", async (group, zone, isExact) => {
    const api = await byApi("builds", { workspace: "large", group: [...group], zone });
    const views = await bySql(kind, "large", group, zone, "");
    if (isExact) return expect(rounded(api)).toEqual(rounded(views));
    const counts = (rows: readonly MatrixRow[]) =>
      rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !percentiles.includes(name))));
    expect(counts(api)).toEqual(counts(views));
    for (const [index, row] of api.entries()) {
      for (const name of percentiles) {
        // Buckets are 2 % wide, and between two builds the exact percentile is interpolated.
        expect(Math.abs(Number(row[name]) / Number(views[index]?.[name]) - 1)).toBeLessThan(0.012);
      }
    }
  });
});

describe.each(["when days are counted", "when days were summed up"])("%s", (when) => {
  beforeAll(async () => {
    // The builds are of six weeks.
    if (when === "when days were summed up") expect(await sumBuildDays(database, { before })).toBeGreaterThan(80);
  });

  it.each([
    [
      "waiting_by_developer",
      "loops",
      ["developer", "project", "day"],
      ["loops", "failed", "overtaken", "waited_ms", "ready_p50_ms", "ready_p90_ms"],
    ],
    [
      "build_times_daily",
      "builds",
      ["developer", "project", "artifact", "day"],
      ["count", "failed", "p50_ms", "p90_ms", "p99_ms", "cached", "canceled", "unknown"],
    ],
    ["slowest_artifacts", "builds", ["project", "artifact", "day"], ["count", "p50_ms", "p90_ms"]],
    ["flaky_artifacts", "flakes", ["project", "artifact", "day"], ["builds", "failed", "flakes", "developers"]],
  ] as const)("%s is what the statistics of %s say by %j", async (view, about, group, figures) => {
    const columns = figures.map((name) => (name === "count" ? "builds as count" : name));
    const { rows } = await sql
      .raw<MatrixRow>(
        `select jsonb_build_object(${group.map((name) => `'${name}', ${name === "day" ? "coalesce(day::text, '')" : name}`).join(", ")}) as "group",
      ${columns.join(", ")} from ${view} where workspace = 'small'`,
      )
      .execute(database.db);
    const api = await byApi(about, { workspace: "small", group: [...group] });
    const isShown = (row: MatrixRow) =>
      // A view about artifacts has those that were built, or flaked, at all.
      view === "flaky_artifacts" ? row.flakes !== 0 : view !== "slowest_artifacts" || row.count !== 0;
    const only = (row: MatrixRow) =>
      Object.fromEntries(["group", ...figures].map((name) => [name, row[name]])) as MatrixRow;
    expect(rows.length).toBeGreaterThan(20);
    expect(rounded(api.filter(isShown).map(only))).toEqual(rounded(sorted(rows).map(only)));
  });
});
