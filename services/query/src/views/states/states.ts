import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Recorded } from "@tapedeck/shared/log/log";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import type { Tx } from "../../db/database.ts";
import type { FoldStateRow, SnapshotRow } from "../../db/schema.ts";
import { insert, table, upsert } from "../../db/table.ts";
import type { View } from "../view.ts";
import { type Fold, type Folds, isState } from "./fold.ts";
import type { StateStep } from "./state-table.ts";

const foldStates = table("fold_states", ["session"]);

const snapshots = table("snapshots", ["session", "position"]);

/** Events between two looks at whether a snapshot pays: the least distance of two snapshots. */
const snapshotStride = 500;

/** The state of every session, folded; snapshots of it for reading the past; and its rows for SQL. */
export function states(folds: Folds): View {
  const tables = Object.values(folds).flatMap((fold) => fold.tables.map(({ name }) => name));
  return {
    name: "states",
    version: 1,
    sessionTables: ["fold_states", "snapshots", ...tables],
    async apply(tx, batch) {
      const relevant = batch.filter(({ event }) => touchesState(event) && foldFor(folds, event));
      if (relevant.length === 0) return;
      const sessions = await load(tx, folds, relevant);
      for (const recorded of relevant) sessions.get(recorded.event.session)?.apply(recorded);

      const folded = [...sessions.values()];
      await upsert(
        tx,
        foldStates,
        folded.map((session) => session.row()),
      );
      await insert(
        tx,
        snapshots,
        folded.flatMap((session) => session.snapshots),
      );
      for (const fold of new Set(folded.map((session) => session.fold))) {
        const changes = folded.filter((session) => session.fold === fold).map((session) => session.change());
        const changed = changes.filter(({ before, after }) => before !== after);
        for (const table of fold.tables) await table.write(tx, changed);
      }
    },
  };
}

function touchesState({ session, kind }: Event): boolean {
  return session !== "" && isState(kind) && kind !== "session.erased";
}

/** Undefined for an upstream that this version does not know. */
export function foldFor(folds: Folds, { source }: Pick<Event, "source">): Fold | undefined {
  const byName: Readonly<Record<string, Fold>> = folds;
  return byName[sourceParts(source as SourceName).upstream];
}

async function load(tx: Tx, folds: Folds, batch: readonly Recorded[]): Promise<Map<string, FoldedSession>> {
  const sources = new Map(batch.map(({ event }) => [event.session, event.source]));
  const rows = await tx
    .selectFrom("fold_states")
    .selectAll()
    .where("session", "in", [...sources.keys()])
    .execute();
  const known = new Map(rows.map((row) => [row.session, row]));
  const sessions = new Map<string, FoldedSession>();
  for (const [session, source] of sources) {
    const fold = foldFor(folds, { source });
    if (fold !== undefined) sessions.set(session, foldedSession(fold, { session, source }, known.get(session)));
  }
  return sessions;
}

type FoldedSession = ReturnType<typeof foldedSession>;

/** One session's state on its way through a batch. */
function foldedSession(fold: Fold, of: { session: string; source: string }, loaded: FoldStateRow | undefined) {
  const before: unknown = loaded === undefined ? undefined : JSON.parse(loaded.state);
  let state = before ?? fold.initial;
  let json = loaded?.state;
  let jsonOf = state;
  let position = loaded?.position ?? 0;
  let events = loaded?.events_since_snapshot ?? 0;
  let bytes = loaded?.bytes_since_snapshot ?? 0;
  const taken: SnapshotRow[] = [];
  const steps: StateStep<unknown>[] = [];

  const stateJson = (): string => {
    if (json === undefined || jsonOf !== state) {
      json = JSON.stringify(state);
      jsonOf = state;
    }
    return json;
  };
  return {
    fold,
    snapshots: taken as readonly SnapshotRow[],
    apply(recorded: Recorded): void {
      const { event, seq } = recorded;
      const after = fold.evolve(state, event);
      if (after !== state) steps.push({ before: state, after, recorded });
      state = after;
      position = seq;
      events += 1;
      bytes += sizeOf(event);
      // Where snapshots stand must not depend on batches, so it is decided at fixed counts of events.
      if (events % snapshotStride === 0 && bytes > stateJson().length) {
        taken.push({ session: of.session, fold_version: fold.version, position, state: stateJson() });
        events = 0;
        bytes = 0;
      }
    },
    row: (): FoldStateRow => ({
      ...of,
      fold_version: fold.version,
      position,
      state: stateJson(),
      events_since_snapshot: events,
      bytes_since_snapshot: bytes,
    }),
    change: () => ({ of, before, after: state, steps }),
  };
}

/** About what the event takes in the log: the frame and a normalized part. */
function sizeOf({ original, summary }: Event): number {
  return 200 + summary.length + (original?.bytes.length ?? 0);
}
