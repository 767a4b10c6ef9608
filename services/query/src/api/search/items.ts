import type { HistoryItem, Hit } from "@tapedeck/proto/tapedeck/v1/lists";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import type { CheckpointRow, FailedOutputRow, HistoryRow, OperationRow, SessionRow } from "../../db/schema.ts";
import { millisecondsBetween, possibleTimestampOf, timestampOf } from "../../db/timestamp.ts";
import { unitOfText } from "../../views/history/unit.ts";
import { causeOf } from "../cause-of.ts";
import type { SqlCondition } from "../conditions.ts";
import { failedStepsOf } from "../list-operations.ts";

export type FoundUnit = Pick<HistoryRow, "session" | "unit" | "kind" | "id" | "outcome" | "at" | "start_position">;

type Log = Pick<CheckpointRow, "epoch">;

/** The items of these rows, each with the first line that has what was searched for. */
export async function historyItems(
  tx: Tx,
  found: readonly FoundUnit[],
  searched: { readonly text: string; readonly pattern: string | undefined },
  { epoch }: Log,
): Promise<readonly HistoryItem[]> {
  if (found.length === 0) return [];
  const keys = sql`unnest(${found.map(({ session }) => session)}::text[], ${found.map(({ unit }) => unit)}::text[])`;
  const [rows, operations, sessions, outputs] = await Promise.all([
    sql<HistoryRow>`select t.* from ${keys} as requested (session, unit) join history t using (session, unit)`.execute(
      tx,
    ),
    sql<OperationRow>`select * from operations where id = any(${found.map(({ id }) => id)}::text[])`.execute(tx),
    sql<SessionRow>`select * from sessions where session = any(${found.map(({ session }) => session)}::text[])`.execute(
      tx,
    ),
    searched.pattern === undefined ? { rows: [] } : outputsWith(tx, keys, searched.pattern, searched.text),
  ]);
  const steps = await failedStepsOf(tx, operations.rows);
  const rowOf = byName(rows.rows, nameOf);
  const operationOf = byName(operations.rows, ({ id }) => id);
  const sessionOf = byName(sessions.rows, ({ session }) => session);
  const outputOf = byName(outputs.rows, nameOf);
  return found.flatMap(({ session, unit, id }) => {
    const row = rowOf.get(nameOf({ session, unit }));
    const [operation, whole] = [operationOf.get(id), sessionOf.get(session)];
    if (row === undefined || (operation ?? whole) === undefined) return [];
    const hit = searched.text === "" ? undefined : hitIn(row, outputOf.get(nameOf(row)), searched.text, epoch);
    const item = operation !== undefined ? ofOperation(operation) : whole !== undefined ? ofSession(whole) : undefined;
    if (item === undefined) return [];
    const { source, kind, runner, loop, outcome, artifacts, labels, start_position } = row;
    const cause = operation !== undefined ? causeOf(operation, steps.get(operation.id)) : whole && causeOf(whole);
    const end = operation === undefined ? whole?.end_position : operation.end_position;
    return {
      ...item,
      source,
      kind,
      session,
      runner,
      loop,
      outcome,
      cause,
      artifacts: [...artifacts],
      labels: { ...labels },
      start_position: formatPosition({ epoch, offset: start_position }),
      end_position: end == null ? "" : formatPosition({ epoch, offset: end }),
      hit,
    };
  });
}

function byName<Row>(rows: readonly Row[], name: (row: Row) => string): ReadonlyMap<string, Row> {
  return new Map(rows.map((row) => [name(row), row]));
}

function nameOf({ session, unit }: Pick<HistoryRow, "session" | "unit">): string {
  return `${session} ${unit}`;
}

type Times = Pick<HistoryItem, "subject" | "instance" | "started_at" | "ended_at" | "duration_ms" | "exit_code">;

function ofOperation(row: OperationRow): Times {
  const { kind, subject, instance, started_at, started_ns, ended_at, ended_ns, duration_ms, exit_code } = row;
  return {
    subject,
    instance: kind === "job" ? subject : instance,
    started_at: possibleTimestampOf(started_at, started_ns),
    ended_at: timestampOf(ended_at, ended_ns),
    duration_ms: duration_ms === null ? undefined : BigInt(duration_ms),
    exit_code: exit_code ?? undefined,
  };
}

/** A session lasts at most as long as nobody would believe. */
const longestMs = 20 * 366 * 24 * 3_600_000;

function ofSession({ command_line, started_at, started_ns, ended_at, ended_ns, exit_code }: SessionRow): Times {
  const ms = millisecondsBetween({ at: started_at, ns: started_ns }, { at: ended_at, ns: ended_ns }, longestMs);
  return {
    subject: command_line,
    instance: "",
    started_at: possibleTimestampOf(started_at, started_ns),
    ended_at: timestampOf(ended_at, ended_ns),
    duration_ms: ms === null ? undefined : BigInt(ms),
    exit_code: exit_code ?? undefined,
  };
}

type FoundOutput = Pick<FailedOutputRow, "session" | "unit" | "kind" | "subject" | "step_position" | "text">;

/** How much text around a match surely has its line, or as much of it as is shown. */
const around = 300;

/** For each unit the output of the step that has the text first, cut to what is around it. */
function outputsWith(tx: Tx, keys: SqlCondition, pattern: string, searched: string) {
  return sql<FoundOutput>`
    select distinct on (f.session, f.unit) f.session, f.unit, f.kind, f.subject, f.step_position,
      substr(f.text, greatest(1, place - ${around}), ${2 * around} + length(${searched}::text)) as text
    from (
      select f.* from ${keys} as requested (session, unit) cross join lateral (
        select f.* from failed_outputs f where f.session = requested.session and f.unit = requested.unit offset 0) f where f.text ilike ${pattern}
      union all
      select e.id, e.source, e.session, requested.unit, '', '', e.position, e.recorded_at, (e.detail ->> 'text') collate "C"
      from ${keys} as requested (session, unit) cross join lateral (
        select e.* from events e
        where e.session = requested.session and e.kind in ('log.written', 'terminal.written')
          and (e.detail ->> 'text') collate "C" ilike ${pattern} and ${unitOfText} = requested.unit
        order by e.position limit 1) e) f
      cross join lateral strpos(lower(f.text), lower(${searched}::text collate "C")) as place
    order by f.session, f.unit, f.kind = '', f.step_position`.execute(tx);
}

function hitIn(row: HistoryRow, output: FoundOutput | undefined, searched: string, epoch: string): Hit | undefined {
  const has = (line: string) => lowered(line).includes(lowered(searched));
  const nothing = { step: "", subject: "", position: "" };
  if (has(row.cause)) return { place: "cause", text: row.cause, ...nothing };
  if (output !== undefined) {
    const { kind, subject, step_position } = output;
    const text = output.text.split(/[\r\n]+/).find(has) ?? searched;
    return { place: "output", text, step: kind, subject, position: formatPosition({ epoch, offset: step_position }) };
  }
  const artifact = row.artifacts.find(has);
  if (artifact !== undefined) return { place: "artifact", text: artifact, ...nothing };
  const label = Object.entries(row.labels).find(([name, value]) => has(`${name}=${value}`));
  if (label !== undefined) return { place: "label", text: label.join("="), ...nothing };
  const line = row.text.split("\n").find(has);
  return line === undefined ? undefined : { place: "name", text: line, ...nothing };
}

/** Lowers letters as Postgres does with the collation "C". */
function lowered(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
