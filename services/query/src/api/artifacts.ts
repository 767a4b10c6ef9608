import type { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { beyondAll, type Offset } from "@tapedeck/shared/log/offset";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { key } from "../db/text.ts";
import type { SqlCondition } from "./conditions.ts";
import { areRare } from "./rare-subjects.ts";

// Which sessions and operations are about an artifact. A rare one is looked up by its builds, because the newest rows may all
// be without it; of another one there are enough among the newest rows.

type Request = Pick<ListRequest, "artifacts">;

/** The kinds of operations whose subject is an artifact. */
const ofArtifact = sql`('build', 'sync')`;

/** The condition that a session built one of the artifacts by then; undefined: the request names none. */
export async function builtIn(
  tx: Tx,
  session: SqlCondition,
  request: Request,
  at: Offset = beyondAll,
): Promise<SqlCondition | undefined> {
  if (request.artifacts.length === 0) return undefined;
  if (await areRare(tx, request.artifacts))
    return sql`${session} in (select b.session from operations b where ${built(request, at)})`;
  return oneOf(sql`b.session = ${session}`, request, at);
}

/**
 * The condition that operation `t` is a build or sync of one of the artifacts, a loop that built one by then, or ran in such
 * a loop.
 */
export async function aboutArtifacts(
  tx: Tx,
  request: Request,
  at: Offset = beyondAll,
): Promise<{ readonly condition: SqlCondition | undefined; readonly isRare: boolean }> {
  if (request.artifacts.length === 0) return { condition: undefined, isRare: false };
  if (!(await areRare(tx, request.artifacts))) {
    const inLoop = sql`(b.session, b.runner, b.loop) = (t.session, t.runner, t.loop)`;
    const condition = sql`case when t.kind in ${ofArtifact} then t.subject = any(${names(request)}::text[])
      else ${oneOf(inLoop, request, at)} end`;
    return { condition, isRare: false };
  }
  const loops = sql`select distinct b.session, b.runner, b.loop from operations b where ${built(request, at)}`;
  const condition = sql`t.id = any(array(
    select b.id from operations b where b.kind in ${ofArtifact} and ${named(request)}
    union all
    select o.id from (${loops}) l join operations o using (session, runner, loop) where o.kind not in ${ofArtifact}))`;
  return { condition, isRare: true };
}

function names({ artifacts }: Request): readonly string[] {
  return artifacts.map(key);
}

/** The second condition is that of an index. */
function named(request: Request): SqlCondition {
  return sql`b.subject = any(${names(request)}::text[]) and b.subject <> ''`;
}

function built(request: Request, at: Offset): SqlCondition {
  return sql`b.kind = 'build' and ${named(request)} and b.start_position <= ${at}`;
}

/**
 * A build of one of the artifacts is there. Not by `exists`, for which Postgres may read all builds first. The index of a
 * session's operations has their subjects' hashes.
 */
function oneOf(place: SqlCondition, request: Request, at: Offset): SqlCondition {
  const hashes = sql`array(select hashtext(name) from unnest(${names(request)}::text[]) as name)`;
  return sql`(
    select true from operations b
    where ${place} and b.kind = 'build' and hashtext(b.subject) = any(${hashes}) and ${named(request)}
      and b.start_position <= ${at} limit 1)`;
}
