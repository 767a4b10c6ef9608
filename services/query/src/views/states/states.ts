import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { ownValue } from "@tapedeck/shared/own-value";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { plannedOnce } from "../../db/pipeline.ts";
import { find, insert, table, upsert } from "../../db/table.ts";
import type { View } from "../view.ts";
import { type Fold, type Folds, isState } from "./fold.ts";
import { FoldedSession } from "./folded-session.ts";
import type { NewestStates } from "./newest-states.ts";
import { stateVersion } from "./state-version.ts";

const foldStates = table("fold_states", ["session"]);

const snapshots = table("snapshots", ["session", "position"]);

/** `newest` gets each state that is written. The folded state of every session, snapshots of it for reading the past, and its rows for SQL. */
export function states(folds: Folds, newest?: NewestStates): View {
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
      if (newest !== undefined) await keep(tx, newest, folded);
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

/** A row's own transaction can read its version already. */
async function keep(tx: Tx, newest: NewestStates, folded: readonly FoldedSession[]): Promise<void> {
  const written = new Map(folded.map((session) => [session.row().session, session]));
  const { rows } = await sql<{ readonly session: string; readonly version: string }>`${plannedOnce}
    select session, ${stateVersion} as version from fold_states where session = any(${[...written.keys()]}::text[])
    `.execute(tx);
  for (const { session, version } of rows) {
    const one = written.get(session);
    if (one === undefined) continue;
    const { source, state } = one.row();
    newest.put({ session, source, version, state: one.change().after, length: state.length });
  }
}

function touchesState({ session, kind }: Event): boolean {
  return session !== "" && isState(kind) && kind !== "session.erased";
}

/** Undefined for an unknown upstream. */
export function foldFor(folds: Folds, { source }: Pick<Event, "source">): Fold | undefined {
  const byName: Readonly<Record<string, Fold>> = folds;
  return ownValue(byName, sourceParts(source as SourceName).upstream);
}

async function load(tx: Tx, folds: Folds, batch: readonly RecordedEvent[]): Promise<Map<string, FoldedSession>> {
  const sources = new Map(batch.map(({ event }) => [event.session, event.source]));
  const rows = await find(
    tx,
    foldStates,
    [...sources.keys()].map((session) => ({ session })),
  );
  const known = new Map(rows.map((row) => [row.session, row]));
  const sessions = new Map<string, FoldedSession>();
  for (const [session, source] of sources) {
    const fold = foldFor(folds, { source });
    if (fold !== undefined) sessions.set(session, new FoldedSession(fold, { session, source }, known.get(session)));
  }
  return sessions;
}
