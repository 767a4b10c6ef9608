import { BuildStatsRequest, type StatsRequest, type StatsResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { sql } from "kysely";
import type { ApiDeps } from "../deps.ts";
import { type Counted, countGrouped, percentile } from "./grouped.ts";

const failed = sql`count(*) filter (where t.outcome = 'failed')`;

/** The figures are those of the views for SQL, counted from the same rows. */
const kinds: Readonly<Record<string, Counted<string>>> = {
  loops: {
    from: sql`loop_times`,
    at: sql`t.started_at`,
    columns: {},
    figures: {
      loops: sql`count(*)`,
      failed,
      overtaken: sql`count(*) filter (where t.overtaken)`,
      waited_ms: sql`coalesce(sum(t.duration_ms), 0)::bigint`,
      ready_p50_ms: percentile(0.5, sql`t.ready_ms`),
      ready_p90_ms: percentile(0.9, sql`t.ready_ms`),
      ready_p99_ms: percentile(0.99, sql`t.ready_ms`),
    },
  },
  failures: {
    from: sql`failures`,
    at: sql`t.failed_at`,
    columns: {
      artifact: sql`case when t.phase = 'build' then t.subject else '' end`,
      phase: sql`t.phase`,
      errorCode: sql`t.error_code`,
      error: sql`t.error`,
    },
    figures: { failures: sql`count(*)`, developers: sql`count(distinct t.developer)` },
  },
  green: {
    from: sql`time_to_green`,
    at: sql`t.failed_at`,
    columns: {
      artifact: sql`case when t.failed_phase = 'build' then t.failed_subject else '' end`,
      phase: sql`t.failed_phase`,
      errorCode: sql`t.error_code`,
      error: sql`t.error`,
    },
    figures: {
      red: sql`count(*)`,
      still_red: sql`count(*) filter (where t.red_ms is null)`,
      red_p50_ms: percentile(0.5, sql`t.red_ms`),
      red_p90_ms: percentile(0.9, sql`t.red_ms`),
      loops_between: sql`coalesce(sum(t.loops_between), 0)::bigint`,
    },
  },
  commands: {
    from: sql`vagrant_command_times`,
    at: sql`t.started_at`,
    columns: {
      command: sql`t.command`,
      machine: sql`t.machine`,
      box: sql`t.box`,
      provider: sql`t.provider`,
    },
    figures: {
      runs: sql`count(*)`,
      failed,
      p50_ms: percentile(0.5, sql`t.duration_ms`),
      p90_ms: percentile(0.9, sql`t.duration_ms`),
    },
  },
};

export async function stats(deps: ApiDeps, { about, of }: StatsRequest): Promise<StatsResponse> {
  const counted = Object.hasOwn(kinds, about) ? kinds[about] : undefined;
  if (counted === undefined) {
    throw invalidArgument(`there are no statistics about "${about}": any of ${Object.keys(kinds).join(", ")}`, "about");
  }
  const { items, position } = await countGrouped(deps, of ?? BuildStatsRequest.create(), counted);
  return {
    items: items.map(({ group, figures }) => ({
      group,
      figures: Object.fromEntries(
        Object.entries(figures).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
      ),
    })),
    position,
  };
}
