/** What `positionText` calls. */
export const positionFunctions: readonly string[] = [
  `create function base36(number bigint) returns text language sql immutable strict parallel safe return (
    select string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz', (number / place % 36)::int + 1, 1), ''
      order by place desc)
    from unnest(array[1, 36, 1296, 46656, 1679616, 60466176, 2176782336, 78364164096, 2821109907456]) as place
    where place = 1 or place <= number)`,
  `create function position_at(log_offset bigint, epoch text) returns text language sql immutable strict parallel safe return
    length(base36(log_offset / 1024)) || base36(log_offset / 1024) || lpad(base36(log_offset % 1024), 2, '0') || '-' || epoch`,
];

/** An offset in the log of a workspace as the position that the API writes and takes. */
export const positionText = `create function position_text(log_offset bigint, workspace text) returns text
  language sql stable strict return position_at($1, (select w.epoch from workspaces w where w.workspace = $2))`;
