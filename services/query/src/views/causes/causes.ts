import { setImmediate as nextTurn } from "node:timers/promises";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { beyondAll, logStart } from "@tapedeck/shared/log/offset";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { isFailedStep } from "../../db/migrations/0001-tables/conditions.ts";
import { plannedOnce } from "../../db/pipeline.ts";
import type { FailedOutputRow, OperationRow, SessionRow } from "../../db/schema.ts";
import { table, upsert } from "../../db/table.ts";
import { text } from "../../db/text.ts";
import { textOfDate } from "../../db/timestamp.ts";
import { unitOf, wholeSession } from "../history/unit.ts";
import { firstFailed, type LoopKey, loopName } from "../loops/finished-loop.ts";
import { finishLoops, loops } from "../loops/loops.ts";
import { endsSession, stepOf } from "../operations/pairing.ts";
import { isInformative } from "../sessions/row.ts";
import { sessions } from "../sessions/sessions.ts";
import type { View } from "../view.ts";
import { adviceIn, type CauseColumns, causeColumnsOf, explained, noCause } from "./cause-columns.ts";
import { isPrintedBy, type Printer, textOf } from "./output.ts";
import { type OutputRange, OutputReader } from "./read-output.ts";

const failedOutputs = table("failed_outputs", ["id"]);

/**
 * Why operations, loops and sessions failed: columns of their tables. A failure is explained when it ends, and again when
 * more of its output comes, and keeps the output that was read. Only failures are looked at: what succeeds costs no more than a question to an index.
 */
export const causes: View = {
  name: "causes",
  version: 3,
  sessionTables: ["failed_outputs"],
  after: [loops, sessions],
  async apply(tx, batch, { log, changed }) {
    const output = new OutputReader(tx, log, batch);
    const ended = failuresOf(batch);
    const late = await sessionsWithFailures(tx, [...output.bySession.keys()]);
    const later = await failedBefore(tx, output, late);
    const failed = [...new Map([...failedIn(batch, changed), ...later].map((row) => [row.id, row])).values()];
    await removeOutputs(tx, batch, changed);
    const unfinished = await unfinishedLoops(tx, endedIn(batch));
    const explained = [
      ...(await explainOperations(tx, output, failed)),
      ...(await explainLoops(tx, output, [...ended, ...failed, ...unfinished])),
    ];
    for (const row of explained) changed.set(row.id, row);
    await explainSessions(tx, output, [
      ...endedIn(batch),
      ...[...ended, ...failed, ...late].map(({ session }) => session),
    ]);
  },
};

/** The loops of the steps that fail in the batch, and the loops that end in it: a step of theirs may have failed before. */
function failuresOf(batch: readonly RecordedEvent[]): readonly LoopKey[] {
  const keys = new Map<string, LoopKey>();
  for (const recorded of batch) {
    const step = stepOf(recorded);
    if (step?.does !== "end" || step.pairing.injected) continue;
    if (step.outcome === "failed" || step.pairing.kind === "loop") keys.set(loopName(step.pairing), step.pairing);
  }
  return [...keys.values()];
}

/** The loops that were under way when their sessions ended. */
async function unfinishedLoops(tx: Tx, names: readonly string[]): Promise<readonly LoopKey[]> {
  if (names.length === 0) return [];
  const { rows } = await sql<LoopKey>`
    select session, runner, loop from operations
    where session = any(${[...new Set(names)]}::text[]) and kind = 'loop' and outcome = 'unknown' and not injected`.execute(
    tx,
  );
  return rows;
}

function endedIn(batch: readonly RecordedEvent[]): readonly string[] {
  return batch.filter(({ event }) => endsSession(event)).map(({ event }) => event.session);
}

/** The condition is that of an index: where nothing has failed in a session, nothing is read. */
const failedStep = sql.raw(isFailedStep);

type OfSession = Pick<SessionRow, "session" | "source">;

/** Those of the sessions in which something has failed. */
async function sessionsWithFailures(tx: Tx, names: readonly string[]): Promise<readonly OfSession[]> {
  if (names.length === 0) return [];
  const { rows } = await sql<OfSession>`${plannedOnce}
    select s.session, s.source from unnest(${[...names]}::text[]) as requested (session)
    cross join lateral (select * from sessions own where own.session = requested.session offset 0) as s
    where (s.exit_code <> 0 and s.end_position is not null)
      or (select true from operations o where o.session = s.session and ${failedStep} limit 1)`.execute(tx);
  return rows;
}

/** The steps that failed in the batch, as far as a later end has not said otherwise. */
function failedIn(
  batch: readonly RecordedEvent[],
  changed: ReadonlyMap<string, OperationRow>,
): readonly OperationRow[] {
  const first = batch[0]?.offset ?? logStart;
  return [...changed.values()].filter(
    ({ outcome, injected, kind, end_position }) =>
      outcome === "failed" && !injected && kind !== "loop" && (end_position ?? logStart) >= first,
  );
}

/** The failures from before the batch that printed some of its text. */
async function failedBefore(
  tx: Tx,
  output: OutputReader,
  sessions: readonly OfSession[],
): Promise<readonly OperationRow[]> {
  const found = sessions.map(async ({ session, source }) => {
    const horizon = await output.horizon(source, session);
    const { rows } = await sql<OperationRow>`
      select * from operations where session = ${session} and ${failedStep}
        and end_position >= ${horizon} and end_position < ${output.first}`.execute(tx);
    const texts = output.bySession.get(session) ?? [];
    return rows.filter((row) => texts.some((text) => isPrintedBy(text, row)));
  });
  return (await Promise.all(found)).flat();
}

async function explainOperations(
  tx: Tx,
  output: OutputReader,
  rows: readonly OperationRow[],
): Promise<readonly OperationRow[]> {
  const ranges = await rangesOf(tx, rows);
  const found = await inTurn(rows, async (row) => {
    const exit = row.exit_code === null || row.exit_code === 0 ? "" : `exit status ${row.exit_code}`;
    const range = ranges.get(row.id);
    const read = range === undefined ? nothingRead : await explainOutput(output, range, row, row.error || exit);
    return { row, ...read };
  });
  await writeCauses(
    tx,
    "operations",
    found.map(({ row, columns }) => ({ ...columns, id: row.id })),
  );
  await writeOutputs(
    tx,
    found.map(({ row, text: printed, endedAt }) => {
      const { id, source, session, kind, subject, start_position } = row;
      const step = { unit: unitOf(row), kind, subject, step_position: start_position };
      return { id, source, session, ...step, recorded_at: endedAt, text: printed };
    }),
  );
  return rows;
}

/** What was printed stays to be searched, as far as it was read. */
async function writeOutputs(tx: Tx, rows: readonly FailedOutputRow[]): Promise<void> {
  const printed = rows.filter(({ text: output }) => output.trim() !== "");
  await upsert(
    tx,
    failedOutputs,
    printed.map((row) => ({ ...row, text: text(row.text) })),
  );
}

/** The last end of a step counts, and a session may go on. */
async function removeOutputs(
  tx: Tx,
  batch: readonly RecordedEvent[],
  changed: ReadonlyMap<string, OperationRow>,
): Promise<void> {
  const operations = [...changed.values()].filter(({ outcome }) => outcome !== "failed").map(({ id }) => id);
  const sessions = new Set(batch.filter(({ event }) => isInformative(event)).map(({ event }) => event.session));
  if (operations.length + sessions.size === 0) return;
  await sql`${plannedOnce}
    delete from failed_outputs f where f.id = any(${operations}::text[])
      or f.id = any(${[...sessions]}::text[]) and (
        select true from sessions s where s.session = f.id and s.exit_code <> 0 and s.end_position is not null limit 1) is null`.execute(
    tx,
  );
}

async function explainOutput(
  output: OutputReader,
  range: OutputRange,
  printer: Printer,
  summary: string,
): Promise<ReadOutput> {
  const { printed: events, end } = await output.read(range, printer);
  const printed = textOf(events);
  const columns = explained({ output: printed, summary, step: printer.kind });
  const read = { text: end === undefined ? "" : printed, endedAt: end === undefined ? "" : textOfDate(end.recordedAt) };
  if (columns.advice !== "" || columns.reason === "") return { columns, ...read };
  return { columns: { ...columns, advice: adviceIn(end?.event.error?.suggestions ?? []) }, ...read };
}

type ReadOutput = { readonly columns: CauseColumns; readonly text: string; readonly endedAt: string };

const nothingRead: ReadOutput = { columns: noCause, text: "", endedAt: "" };

/**
 * Where the text of these operations may stand in the log. Text names its loop; outside of loops it is between the same
 * step before and after. Only steps, apps and commands are explained again when text comes late.
 */
async function rangesOf(tx: Tx, rows: readonly OperationRow[]): Promise<ReadonlyMap<string, OutputRange>> {
  if (rows.length === 0) return new Map();
  const { rows: ranges } = await sql<OutputRange & { readonly id: string }>`
    select o.id, o.session, o.source, o.start_position as start, o.end_position as end,
      coalesce(before.position, ${logStart}) as after, case when o.kind in ('loop', 'job', 'pod') then o.end_position + 1
        else coalesce(next.position, ${beyondAll}) end as until
    from unnest(${rows.map(({ id }) => id)}::text[]) as requested (id) join operations o using (id)
    left join lateral (
      select max(b.end_position) as position from operations b
      where b.session = o.session and b.runner = o.runner and b.loop = 0 and b.kind = o.kind and b.subject = o.subject
        and b.instance = o.instance and hashtext(b.subject) = hashtext(o.subject)
        and hashtext(b.instance) = hashtext(o.instance) and b.start_position < o.start_position) before on o.loop = 0
    left join lateral (
      select min(n.start_position) as position from operations n
      where n.session = o.session and n.runner = o.runner and n.loop = 0 and n.kind = o.kind and n.subject = o.subject
        and n.instance = o.instance and hashtext(n.subject) = hashtext(o.subject)
        and hashtext(n.instance) = hashtext(o.instance) and n.start_position > o.end_position) next on o.loop = 0`.execute(
    tx,
  );
  return new Map(ranges.map(({ id, ...range }) => [id, range]));
}

/** A loop's cause is that of the step that failed first in it. */
async function explainLoops(tx: Tx, output: OutputReader, keys: readonly LoopKey[]): Promise<readonly OperationRow[]> {
  const ofLoops = keys.filter(({ loop }) => loop > 0);
  if (ofLoops.length === 0) return [];
  const column = (name: keyof LoopKey) => ofLoops.map((key) => key[name]);
  const { rows } = await sql<OperationRow>`${plannedOnce}
    with requested as (
      select distinct session, runner, loop
      from unnest(${column("session")}::text[], ${column("runner")}::int[], ${column("loop")}::int[])
        as given (session, runner, loop))
    select own.* from requested r
    cross join lateral (
      select from operations o
      where o.session = r.session and o.runner = r.runner and o.loop = r.loop and o.outcome = 'failed' and not o.injected
      limit 1) as failed
    cross join lateral (
      select * from operations o
      where o.session = r.session and o.runner = r.runner and o.loop = r.loop and not o.injected offset 0) as own
    order by own.start_position, own.id`.execute(tx);
  const withFailures = [...Map.groupBy(rows, loopName).values()];
  const found = await inTurn(withFailures, async (own) => {
    const loop = own.find(({ kind, outcome }) => kind === "loop" && outcome !== null);
    if (loop === undefined || loop.outcome === "canceled") return undefined;
    const cause = firstFailed(own.filter(({ kind }) => kind !== "loop"));
    if (cause !== undefined) return { ...causeColumnsOf(cause), id: loop.id };
    if (loop.outcome !== "failed") return { ...noCause, id: loop.id };
    const range = (await rangesOf(tx, [loop])).get(loop.id);
    const { columns } = range === undefined ? nothingRead : await explainOutput(output, range, loop, loop.error);
    return { ...columns, id: loop.id };
  });
  await writeCauses(
    tx,
    "operations",
    found.filter((one) => one !== undefined),
  );
  // The rows of all others have no causes, and are written.
  await finishLoops(
    tx,
    withFailures.flatMap(([first]) => first ?? []),
    [],
  );
  return rows.filter(({ kind }) => kind === "loop");
}

type SessionState = SessionRow & {
  /** It had dev loops or commands, which say by themselves how they ended. */
  readonly has_units: boolean;
};

/**
 * A session that failed by its exit code has the cause of the loop or command that failed last in it, or of the step
 * outside of loops that failed first. Where no step failed, what it printed at its end says why.
 */
async function explainSessions(tx: Tx, output: OutputReader, names: readonly string[]): Promise<void> {
  const unique = [...new Set(names)];
  if (unique.length === 0) return;
  const { rows } = await sql<SessionState>`${plannedOnce}
    select s.*, (
        select true from operations o where o.session = s.session and o.kind in ('loop', 'command') and not o.injected
        limit 1) is not null as has_units
    from sessions s where s.session = any(${unique}::text[]) and s.exit_code <> 0 and s.end_position is not null`.execute(
    tx,
  );
  const found = await inTurn(rows, async (row) => ({ row, ...(await causeOfSession(tx, output, row)) }));
  await writeCauses(
    tx,
    "sessions",
    found.map(({ row, columns }) => ({ ...columns, session: row.session })),
  );
  await writeOutputs(
    tx,
    found.map(({ row: { session, source, start_position }, text: printed, endedAt }) => {
      const step = { unit: wholeSession, kind: "session", subject: "", step_position: start_position };
      return { id: session, source, session, ...step, recorded_at: endedAt, text: printed };
    }),
  );
}

/** Without text where the cause is that of an operation. */
async function causeOfSession(tx: Tx, output: OutputReader, row: SessionState): Promise<ReadOutput> {
  const { session, source, end_position, start_position, end_reason } = row;
  const { rows } = await sql<OperationRow>`
    (select * from operations where session = ${session} and kind in ('loop', 'command') and outcome = 'failed' and not injected
      order by end_position desc limit 1)
    union all
    (select * from operations where session = ${session} and kind not in ('loop', 'command', 'job', 'pod') and loop = 0
        and outcome = 'failed' and not injected
      order by (reason = 'cancelled'), ended_at, ended_ns, end_position limit 1)`.execute(tx);
  const [operation] = rows;
  if (operation !== undefined) return { ...nothingRead, columns: causeColumnsOf(operation) };
  if (row.has_units || end_position === null) return nothingRead;
  const whole: Printer = { kind: "session", subject: "", instance: "", runner: 0, loop: 0 };
  const range = { session, source, after: logStart, start: start_position, end: end_position, until: beyondAll };
  return explainOutput(output, range, whole, end_reason);
}

/** One after the other, so that no other work of this process waits for more than one of them. */
async function inTurn<In, Out>(all: readonly In[], work: (one: In) => Promise<Out>): Promise<Out[]> {
  const done: Out[] = [];
  for (const one of all) {
    done.push(await work(one));
    await nextTurn();
  }
  return done;
}

type Explained = CauseColumns & { readonly id?: string; readonly session?: string };

async function writeCauses(tx: Tx, table: "operations" | "sessions", rows: readonly Explained[]): Promise<void> {
  if (rows.length === 0) return;
  const name = table === "operations" ? "id" : "session";
  const column = (of: keyof Explained) => rows.map((row) => row[of] ?? null);
  await sql`
    update ${sql.table(table)} t set cause = n.cause, reason = n.reason, cause_group = n.cause_group,
      cause_file = n.cause_file, cause_line = n.cause_line, advice = n.advice
    from unnest(${column(name)}::text[], ${column("cause")}::text[], ${column("reason")}::text[],
      ${column("cause_group")}::text[], ${column("cause_file")}::text[], ${column("cause_line")}::int[],
      ${column("advice")}::text[]) as n (name, cause, reason, cause_group, cause_file, cause_line, advice)
    where t.${sql.ref(name)} = n.name
      and (t.cause, t.reason, t.cause_group, t.cause_file, t.cause_line, t.advice)
        is distinct from (n.cause, n.reason, n.cause_group, n.cause_file, n.cause_line, n.advice)`.execute(tx);
}
