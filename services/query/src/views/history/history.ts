import { isDeepStrictEqual } from "node:util";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { isBuildOutsideLoops } from "../../db/migrations/0001-tables/conditions.ts";
import { plannedOnce } from "../../db/pipeline.ts";
import type { OperationRow, SessionRow } from "../../db/schema.ts";
import { find, table, upsert } from "../../db/table.ts";
import { textOfDate } from "../../db/timestamp.ts";
import { causes } from "../causes/causes.ts";
import { earliestLabels } from "../loops/loop-labels.ts";
import { newestOf } from "../operations/operations.ts";
import { type Pairing, pairingKey, stepOf } from "../operations/pairing.ts";
import { isInformative } from "../sessions/row.ts";
import type { View } from "../view.ts";
import { rowOfOperation, rowOfSession, type UnitDetails } from "./row.ts";
import { unitKinds, unitOf, wholeSession } from "./unit.ts";

const historyTable = table("history", ["session", "unit"]);
const units: ReadonlySet<string> = new Set(unitKinds);

/** One row for each loop, command, job, pod and session, with what it is filtered and searched by. */
export const history: View = {
  name: "history",
  version: 1,
  sessionTables: ["history"],
  after: [causes],
  async apply(tx, batch, { changed }) {
    const [touched, others, sessions] = await Promise.all([
      newestOf(tx, touchedUnits(batch)),
      otherUnits(tx, batch, changed),
      changedSessions(tx, batch),
    ]);
    const operations = newestOfUnits([...touched, ...others].filter(({ injected }) => !injected));
    const keys = [
      ...operations.map((row) => ({ session: row.session, unit: unitOf(row) })),
      ...sessions.map(({ session }) => ({ session, unit: wholeSession })),
    ];
    if (keys.length === 0) return;
    const [before, details] = await Promise.all([find(tx, historyTable, keys), detailsOf(tx, keys)]);
    const known = new Map(before.map((row) => [nameOf(row), row]));
    const recordedAt = new Map(batch.map(({ offset, recordedAt: at }) => [offset, at]));
    // Only the batch with its beginning knows when that was recorded.
    const recorded = (key: Key, { start_position }: Pick<OperationRow, "start_position">) => {
      const earlier = known.get(nameOf(key));
      if (earlier?.start_position === start_position) return earlier.recorded_at;
      const at = recordedAt.get(start_position);
      return at && textOfDate(at);
    };
    const of = (key: Key) => details.get(nameOf(key)) ?? noDetails;
    const rows = [
      ...operations.map((row, index) => {
        const key = keys[index] ?? { session: row.session, unit: unitOf(row) };
        return rowOfOperation(row, of(key), recorded(key, row));
      }),
      ...sessions.map((row) => {
        const key = { session: row.session, unit: wholeSession };
        return rowOfSession(row, of(key), recorded(key, row));
      }),
    ];
    await upsert(
      tx,
      historyTable,
      rows.filter((row) => !isDeepStrictEqual(row, known.get(nameOf(row)))),
    );
  },
};

/** The condition is that of an index. */
const buildOutsideLoops = sql.raw(isBuildOutsideLoops);

type Key = { readonly session: string; readonly unit: string };

function nameOf({ session, unit }: Key): string {
  return `${session} ${unit}`;
}

const noDetails: UnitDetails = { artifacts: [], labels: {} };

/** The units of which a step begins or ends in the batch. */
function touchedUnits(batch: readonly RecordedEvent[]): readonly Pairing[] {
  const found = new Map<string, Pairing>();
  for (const recorded of batch) {
    const step = stepOf(recorded);
    if (step === undefined || step.pairing.injected) continue;
    const { pairing } = step;
    if (pairing.loop === 0 && !units.has(pairing.kind)) continue;
    const unit = pairing.loop === 0 ? pairing : { ...pairing, kind: "loop", subject: "", instance: "" };
    found.set(pairingKey(unit), unit);
  }
  return [...found.values()];
}

/** A job with a command is that command. */
function newestOfUnits(rows: readonly OperationRow[]): readonly OperationRow[] {
  const found = new Map<string, OperationRow>();
  for (const row of rows) {
    const name = nameOf({ session: row.session, unit: unitOf(row) });
    const other = found.get(name);
    const isBetter =
      other === undefined || row.kind === other.kind
        ? (other?.start_position ?? 0) <= row.start_position
        : row.kind === "command";
    if (isBetter) found.set(name, row);
  }
  return [...found.values()];
}

/**
 * Units that change without a step of theirs: those that ran when their session ended, those whose labels or causes came
 * late, and the commands of the jobs that change.
 */
async function otherUnits(
  tx: Tx,
  batch: readonly RecordedEvent[],
  changed: ReadonlyMap<string, OperationRow>,
): Promise<readonly OperationRow[]> {
  const touched = touchedUnits(batch);
  const touchedKeys = new Set(touched.map(pairingKey));
  const others = [...changed.values()].filter((row) => units.has(row.kind) && !touchedKeys.has(pairingKey(row)));
  const labelled = earliestLabels(batch);
  const jobs = touched.filter(({ kind }) => kind === "job");
  if (others.length + labelled.size + jobs.length === 0) return [];
  const { rows } = await sql<OperationRow>`
    select o.* from operations o where o.id = any(${others.map(({ id }) => id)}::text[])
    union
    select o.* from unnest(${[...labelled.keys()]}::text[], ${[...labelled.values()]}::timestamptz[]) as given (session, at)
      join operations o on o.session = given.session and o.started_at >= given.at
    where o.kind = 'loop' and not o.injected
    union
    select o.* from unnest(${jobs.map(({ session }) => session)}::text[], ${jobs.map(({ subject }) => subject)}::text[])
      as requested (session, job)
      join operations o on o.instance = requested.job and o.instance <> '' and o.session = requested.session and o.kind = 'command'`.execute(
    tx,
  );
  return rows;
}

/** Sessions that begin, end or change in the batch, and those whose causes came late. */
async function changedSessions(tx: Tx, batch: readonly RecordedEvent[]): Promise<readonly SessionRow[]> {
  const all = batch.filter(({ event }) => event.session !== "" && event.kind !== "session.erased");
  const names = [...new Set(all.map(({ event }) => event.session))];
  if (names.length === 0) return [];
  const informed = [...new Set(all.filter(({ event }) => isInformative(event)).map(({ event }) => event.session))];
  const { rows } = await sql<SessionRow>`${plannedOnce}
    select s.* from unnest(${names}::text[]) as requested (session)
    cross join lateral (select * from sessions own where own.session = requested.session offset 0) as s
    left join lateral (
      select own.session, own.cause from history own where own.session = s.session and own.unit = ${wholeSession} offset 0) as h
      on true
    where s.session = any(${informed}::text[]) or h.session is null or h.cause <> s.cause`.execute(tx);
  return rows;
}

type FoundDetails = Key & UnitDetails;

/** What of units is in other tables: labels when they began, and what they built. */
async function detailsOf(tx: Tx, keys: readonly Key[]): Promise<ReadonlyMap<string, UnitDetails>> {
  const { rows } = await sql<FoundDetails>`${plannedOnce}
    select requested.session, requested.unit,
      jsonb_strip_nulls(coalesce(s.labels, '{}') || coalesce(c.labels, '{}')) as labels,
      array(
        select distinct b.subject from (
          select o.subject from operations o
          where o.session = requested.session and o.runner = requested.runner and o.loop = requested.loop
            and o.kind = 'build' and o.subject <> '' and not o.injected
          union all
          select o.subject from operations o
          where requested.unit = '' and o.session = requested.session and ${buildOutsideLoops}) b
        order by 1 limit ${maxArtifacts}) as artifacts
    from (
      select session, unit, case when unit ~ '^\\d+\\.\\d+$' then split_part(unit, '.', 1)::int end as runner,
        case when unit ~ '^\\d+\\.\\d+$' then split_part(unit, '.', 2)::int end as loop
      from unnest(${keys.map(({ session }) => session)}::text[], ${keys.map(({ unit }) => unit)}::text[])
        as given (session, unit)) requested
    left join lateral (select own.labels from sessions own where own.session = requested.session offset 0) as s on true
    left join lateral (
      select own.labels from loop_labels own
      where own.session = requested.session and own.runner = requested.runner and own.loop = requested.loop offset 0) as c
      on true`.execute(tx);
  return new Map(rows.map(({ artifacts, labels, ...key }) => [nameOf(key), { artifacts, labels }]));
}

const maxArtifacts = 100;
