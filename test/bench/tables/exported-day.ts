import type { Client } from "pg";

/** Writes operations of one day, and nothing that follows from them: no trigger runs. */
export async function fillDay(client: Client, day: string, operations: number): Promise<void> {
  await client.query("set session_replication_role = replica");
  await client.query(
    `insert into tapedeck.operations (id, source, workspace, developer, project, upstream, session, runner, loop, kind, subject,
      instance, started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform,
      iteration, start_position, end_position)
    select '01KE3M9Z6Q4W8T2V5X7Y9A1B3C.v1.' || n, 'default/dev-' || n / 10 % 200 || '/shop/skaffold', 'default',
      'dev-' || n / 10 % 200, 'shop', 'skaffold', 'V-' || n / 10 % 200, 1, n / 10,
      case when n % 10 in (0, 8) then 'deploy' else 'build' end, case when n % 10 in (0, 8) then '' else 'image-' || n % 10 end, '',
      at, 0, at + interval '3 s', 0, 500 + n * 7919::bigint % 20000, case when n % 23 = 0 then 'failed' else 'succeeded' end,
      case when n % 23 = 0 then 'BUILD_UNKNOWN' else '' end, case when n % 23 = 0 then 'error ' || n % 31 else '' end,
      n % 10 = 5, false, 'linux/amd64', null, n * 1024::bigint, n * 1024::bigint + 512
    from generate_series(0, $2::int - 1) n, lateral (select $1::timestamptz + n * interval '23 hours' / $2::int as at) t`,
    [`${day}T00:00:00Z`, operations],
  );
  await client.query("reset session_replication_role");
  await client.query("vacuum analyze tapedeck.operations");
}
