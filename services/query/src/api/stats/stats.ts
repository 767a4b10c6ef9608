import { BuildStatsRequest, type StatsRequest, type StatsResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { ownValue } from "@tapedeck/shared/own-value";
import { sql } from "kysely";
import { anyOf, type SqlCondition } from "../conditions.ts";
import type { ApiDeps } from "../deps.ts";
import { daysBetween } from "./build-stats.ts";
import { type Counted, countGrouped, loopOf, percentile } from "./grouped.ts";

const sum = (column: string) => sql`coalesce(sum(${sql.ref(`t.${column}`)}), 0)::bigint`;

const failed = sql`count(*) filter (where t.outcome = 'failed')`;

/** What is over, and in no percentile: its times can't both be right, or one is not known (see millisecondsBetween). */
const untimed = sql`count(*) filter (where t.duration_ms is null and t.outcome <> 'unknown')`;

/** The figures are those of the views for SQL, counted from the same rows. */
const kinds: Readonly<Record<string, Counted<string>>> = {
  loops: {
    from: sql`loop_times`,
    at: sql`t.started_at`,
    loop: loopOf(),
    ofArtifacts: (names) => sql`exists (
      select from operations b where b.session = t.session and b.runner = t.runner and b.loop = t.loop
        and b.kind = 'build' and ${anyOf(sql`b.subject`, names)})`,
    columns: {},
    figures: {
      loops: sql`count(*)`,
      failed,
      overtaken: sql`count(*) filter (where t.overtaken)`,
      waited_ms: sum("duration_ms"),
      // These add up to waited_ms.
      sync_ms: sum("sync_ms"),
      build_ms: sum("build_ms"),
      test_ms: sum("test_ms"),
      render_ms: sum("render_ms"),
      deploy_ms: sum("deploy_ms"),
      check_ms: sum("check_ms"),
      other_ms: sum("other_ms"),
      ready_p50_ms: percentile(0.5, sql`t.ready_ms`),
      ready_p90_ms: percentile(0.9, sql`t.ready_ms`),
      ready_p99_ms: percentile(0.99, sql`t.ready_ms`),
      untimed,
    },
  },
  failures: {
    from: sql`failures`,
    at: sql`t.failed_at`,
    // A session that failed by its exit code alone has no operation.
    loop: sql`coalesce(${loopOf(sql`t.operation_id`)}, t.session || '.0.0')`,
    columns: {
      artifact: sql`case when t.phase = 'build' then t.subject else '' end`,
      phase: sql`t.phase`,
      reason: sql`t.reason`,
      cause: sql`t.cause_group`,
      errorCode: sql`t.error_code`,
      error: sql`t.error`,
    },
    figures: { failures: sql`count(*)`, developers: sql`count(distinct t.developer)` },
  },
  green: {
    from: sql`time_to_green`,
    at: sql`t.failed_at`,
    loop: loopOf(sql`t.loop_id`),
    columns: {
      artifact: sql`case when t.failed_phase = 'build' then t.failed_subject else '' end`,
      phase: sql`t.failed_phase`,
      reason: sql`t.reason`,
      cause: sql`t.cause_group`,
      errorCode: sql`t.error_code`,
      error: sql`t.error`,
    },
    figures: {
      red: sql`count(*)`,
      still_red: sql`count(*) filter (where t.green_loop_id is null)`,
      red_p50_ms: percentile(0.5, sql`t.red_ms`),
      red_p90_ms: percentile(0.9, sql`t.red_ms`),
      loops_between: sum("loops_between"),
    },
  },
  flakes: {
    from: flakyBuilds(),
    at: sql`t.started_at`,
    loop: loopOf(),
    columns: { artifact: sql`t.artifact` },
    figures: {
      builds: sql`count(*)`,
      failed,
      flakes: sql`count(*) filter (where t.is_flake)`,
      developers: sql`count(distinct t.developer) filter (where t.is_flake)`,
    },
    also: daysBetween,
  },
  commands: {
    from: sql`vagrant_command_times`,
    at: sql`t.started_at`,
    columns: {
      command: sql`t.command`,
      machine: sql`t.machine`,
      box: sql`t.box`,
      provider: sql`t.provider`,
      // With time, an answer has the commands that a number is made of.
      session: sql`t.session`,
      position: sql`t.start_position_text`,
    },
    figures: {
      runs: sql`count(*)`,
      failed,
      p50_ms: percentile(0.5, sql`t.duration_ms`),
      p90_ms: percentile(0.9, sql`t.duration_ms`),
      untimed,
    },
  },
};

/** The builds that ran, as the view flaky_artifacts counts them by day: the next one of a flake is found by an index. */
function flakyBuilds(): SqlCondition {
  return sql`(
    select b.workspace, b.developer, b.project, b.source, b.labels, b.session, b.runner, b.loop, b.artifact,
      b.started_at, b.outcome, next.is_good as is_flake
    from build_times b left join lateral (
      select n.outcome = 'succeeded' as is_good from operations n
      where b.outcome = 'failed' and n.session = b.session and n.runner = b.runner and n.subject = b.artifact
        and (n.loop, n.start_position) > (b.loop, b.start_position)
        and n.kind = 'build' and not n.cache_hit and not n.injected and n.outcome in ('succeeded', 'failed')
      order by n.loop, n.start_position limit 1) next on true
    where b.outcome in ('succeeded', 'failed') and not b.cache_hit and not b.injected)`;
}

export async function stats(deps: ApiDeps, { about, of }: StatsRequest): Promise<StatsResponse> {
  const counted = ownValue(kinds, about);
  if (counted === undefined) {
    throw invalidArgument(
      `there are no statistics about "${about}": use one of ${Object.keys(kinds).join(", ")}`,
      "about",
    );
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
