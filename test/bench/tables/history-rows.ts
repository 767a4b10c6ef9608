import { Client } from "pg";

const developers = 50;
const sessions = 1_000;
const batch = 100_000;

/** The developer of number n, who is another one in the first hundredth. */
const developer = `case when n <= $3::int / 100 then 'left' else 'dev-' || n % ${developers} end`;
const source = `'default/' || d || '/shop/skaffold' as source, 'default' as workspace, d as developer, 'shop' as project, 'skaffold' as upstream`;
const at = "timestamptz '2025-11-20Z' + n * (interval '365 days' / $3::int)";
const numbers = `generate_series($1::int, $2::int) n, lateral (select ${developer} as d, ${at} as at,
  'H-' || n % ${sessions} as session, 1 + n / ${sessions} as loop, n % 10 = 3 as failed,
  case when n % 50000 = 7 then 'rare' else 'image-' || n % 17 end as artifact, 'feature-' || n * 7919::bigint % 5000 as branch) f`;

/** The rows as the projection writes them. Positions are negative: no event of the log has them. */
const fill = [
  `insert into tapedeck.operations (id, source, workspace, developer, project, upstream, session, runner, loop, kind, subject, started_at,
     started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform, iteration, cause, reason,
     start_position, end_position)
   select 'history-' || n, ${source}, session, 1, loop, 'loop', '', at, 0, at + interval '3 s', 0, 3000,
     case when failed then 'failed' else 'succeeded' end, '', '', false, false, '', loop,
     case when failed then 'error TS' || n % 997 || ': exit status ' || n % 7 else '' end, case when failed then 'type error' else '' end,
     -1900000000 + n, -1900000000 + n
   from ${numbers}`,
  `insert into tapedeck_internal.history (source, workspace, developer, project, upstream, session, unit, kind, id, runner, loop, at, recorded_at,
     outcome, cause, reason, text, artifacts, labels, tags, start_position)
   select ${source}, session, '1.' || loop, 'loop', 'history-' || n, 1, loop, at, at, outcome, cause, reason,
     concat_ws(E'\\n', nullif(cause, ''), nullif(reason, ''), artifact, 'branch=' || branch, 'host=laptop-' || n % ${developers}),
     jsonb_build_array(artifact), jsonb_build_object('branch', branch, 'host', 'laptop-' || n % ${developers}),
     jsonb_build_array('default/kind:loop', 'default/outcome:' || outcome,
       'default/artifact:' || artifact, 'default/label:branch=' || branch, 'default/label:host=laptop-' || n % ${developers})
       || case when failed then '["default/reason:type error"]'::jsonb else '[]' end,
     -1900000000 + n
   from ${numbers}, lateral (select case when failed then 'failed' else 'succeeded' end as outcome,
     case when failed then 'error TS' || n % 997 || ': exit status ' || n % 7 else '' end as cause,
     case when failed then 'type error' else '' end as reason) c`,
  // Some 3 KB: what tools print, with names that differ.
  `insert into tapedeck_internal.failed_outputs (id, source, session, unit, kind, subject, step_position, recorded_at, text)
   select 'output-' || n, 'default/' || d || '/shop/skaffold', session, '1.' || loop, 'build', artifact, -1900000000 + n, at,
     (select string_agg('#' || line || ' ' || (array['warning: deprecated module', 'fetching layer', 'npm http fetch GET 200', 'copying context'])[1 + line % 4]
        || ' ' || substr(md5((n * 61::bigint + line)::text), 1, 6 + line % 9) || '/' || substr(md5(n % 5000 || 'dir' || line), 1, 8), E'\\n')
      from generate_series(1, 60) line)
     || case when n % 1000 = 13 then E'\\nopen /src/app/config.yaml: no such file or directory' else '' end
     || case when n % 100000 = 23 or $3::int < 100000 and n = 23 then E'\\nthe needle of the haystack' else '' end
     || E'\\nerror: exit status ' || n % 7
   from ${numbers} where failed`,
];

/** Writes a year of loops. The indexes of texts are made afterwards, which is quicker. */
export async function fillHistory(url: string, loops: number): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string; definition: string }>(`
      select indexname as name, indexdef as definition from pg_indexes
      where schemaname = 'tapedeck_internal' and indexname in ('history_text', 'history_tags', 'failed_outputs_text')`);
    for (const { name } of rows) await client.query(`drop index tapedeck_internal.${name}`);
    await client.query(
      `insert into tapedeck.sources (source, workspace, developer, project, upstream, developer_name, project_name, status, connected,
         in_session, gaps, address, first_position, last_position, last_event_ns)
       select 'default/' || d || '/shop/skaffold', 'default', d, 'shop', 'skaffold', d, 'shop', 'recording', true, true, 0, '', -1, -1, 0
       from (select 'dev-' || generate_series(0, ${developers - 1}) union all select 'left') names (d)`,
    );
    await client.query(
      `insert into tapedeck.sessions (source, workspace, developer, project, upstream, session, labels, upstream_version, started_at,
         started_ns, ended_ns, end_reason, start_position, last_position, gaps)
       select 'default/dev-0/shop/skaffold', 'default', 'dev-0', 'shop', 'skaffold', 'H-' || n, '{}', '1', '2025-11-01', 0, 0, '',
         -2000000000 + n, -1, 0
       from generate_series(0, ${sessions - 1}) n`,
    );
    for (let from = 1; from <= loops; from += batch) {
      const bounds = [from, Math.min(loops, from + batch - 1), loops];
      for (const statement of fill) await client.query(statement, bounds);
    }
    await client.query("set maintenance_work_mem = '256MB'");
    for (const { definition } of rows) await client.query(definition);
    for (const table of [
      "tapedeck.operations",
      "tapedeck_internal.history",
      "tapedeck_internal.failed_outputs",
      "tapedeck.sources",
    ])
      await client.query(`vacuum analyze ${table}`);
  } finally {
    await client.end();
  }
}
