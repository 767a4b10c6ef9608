/** What `positionText` calls. */
export const positionFunctions: readonly string[] = [
  `create function base36(number bigint) returns text language sql immutable strict parallel safe return (
    select string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz', (number / place % 36)::int + 1, 1), ''
      order by place desc)
    from unnest(array[1, 36, 1296, 46656, 1679616, 60466176, 2176782336, 78364164096, 2821109907456]) as place
    where place = 1 or place <= number)`,
  // With the rights of its owner, because readers of the tables may not read the checkpoint.
  `create function log_epoch() returns text language sql stable security definer return (
    select epoch from checkpoint where name = 'log')`,
];

/** An offset of the log as the position that the API writes and takes. */
export const positionText = `create function position_text(log_offset bigint) returns text language sql stable strict return
  length(base36(log_offset / 1024)) || base36(log_offset / 1024) || lpad(base36(log_offset % 1024), 2, '0')
    || '-' || log_epoch()`;
