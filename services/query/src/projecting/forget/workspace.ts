import type { Kysely } from "kysely";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import type { Lane } from "../../db/pipelines.ts";
import { noSwapUntilCommit } from "../../db/read.ts";
import { columnTypes } from "../../db/schema.generated.ts";
import type { Schema } from "../../db/schema.ts";

/*
 * A removed workspace is hidden at once: its checkpoint is marked, so that nothing is answered or projected. Its rows go in
 * pieces, each a transaction of bounded size, and the checkpoint with the last of them. Until then no log of the same name
 * is projected. What is interrupted goes on at the next start.
 */

/** Rows of one piece. */
const pieceRows = 5_000;
/** Sessions whose rows are deleted together. */
const pieceSessions = 50;

/** Hides a workspace; the query that projects deletes its rows. Resolves with false when it has no tables. */
export async function forgetWorkspace(db: Kysely<Schema>, workspace: string): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    await noSwapUntilCommit(tx);
    const { numUpdatedRows } = await tx
      .updateTable("checkpoint")
      .set({ removed: true })
      .where("workspace", "=", workspace)
      .executeTakeFirst();
    await tx.deleteFrom("workspaces").where("workspace", "=", workspace).execute();
    return numUpdatedRows > 0n;
  });
}

type TableColumns = Readonly<Record<string, string>>;
const tables = Object.entries<TableColumns>(columnTypes).filter(([name]) => name !== "checkpoint");
const ofSessions = tables.flatMap(([name, columns]) => ("session" in columns && name !== "sessions" ? [name] : []));
/** Without those that only have rows of sessions: not all of them have an index of sources. */
const ofSources = tables.flatMap(([name, columns]) =>
  "source" in columns && (!("session" in columns) || ["events", "sessions"].includes(name)) && name !== "sources"
    ? [name]
    : [],
);
const ofWorkspaces = tables.flatMap(([name, columns]) => ("workspace" in columns ? [name] : []));

/** Deletes the rows of a workspace that was removed, and its checkpoint last; until the signal. */
export async function deleteWorkspace(lane: Lane, workspace: string, signal: AbortSignal): Promise<void> {
  const deletion = new Deletion(lane, signal);
  for (
    let sources = await deletion.sources(workspace);
    sources.length > 0;
    sources = await deletion.sources(workspace)
  ) {
    for (const source of sources) {
      for (let all = await deletion.sessions(source); all.length > 0; all = await deletion.sessions(source)) {
        for (const name of ofSessions) await deletion.from(name, sql`session = any(${all}::text[])`);
        await deletion.from("sessions", sql`session = any(${all}::text[])`);
      }
      for (const name of ofSources) await deletion.from(name, sql`source = ${source}`);
      await deletion.from("sources", sql`source = ${source}`);
    }
  }
  for (const name of ofWorkspaces) await deletion.from(name, sql`workspace = ${workspace}`);
  await deletion.from("checkpoint", sql`workspace = ${workspace} and removed`);
}

class Deletion {
  readonly #lane: Lane;
  readonly #signal: AbortSignal;

  constructor(lane: Lane, signal: AbortSignal) {
    this.#lane = lane;
    this.#signal = signal;
  }

  /** Some of them; none after the signal. */
  async sources(workspace: string): Promise<readonly string[]> {
    const rows = await this.#read((tx) =>
      tx
        .selectFrom("sources")
        .select("source as name")
        .where("workspace", "=", workspace)
        .limit(pieceSessions)
        .execute(),
    );
    return rows.map(({ name }) => name);
  }

  async sessions(source: string): Promise<readonly string[]> {
    const rows = await this.#read((tx) =>
      tx.selectFrom("sessions").select("session as name").where("source", "=", source).limit(pieceSessions).execute(),
    );
    return rows.map(({ name }) => name);
  }

  /** Deletes the rows piece by piece. */
  async from(name: string, which: ReturnType<typeof sql>): Promise<void> {
    const table = sql.table(name);
    for (let deleted = pieceRows; deleted === pieceRows && !this.#signal.aborted; ) {
      const rows = await this.#read(async (tx) => {
        const found = await sql<{ deleted: number }>`
          with piece as (select tableoid, ctid from ${table} where ${which} limit ${pieceRows}),
          gone as (delete from ${table} t using piece p where t.ctid = p.ctid and t.tableoid = p.tableoid returning 1)
          select count(*)::int as deleted from gone`.execute(tx);
        return found.rows;
      });
      deleted = rows[0]?.deleted ?? 0;
    }
  }

  async #read<Row>(read: (tx: Tx) => Promise<readonly Row[]>): Promise<readonly Row[]> {
    if (this.#signal.aborted) return [];
    const { result, committed } = await this.#lane.transaction(async (tx) => {
      await noSwapUntilCommit(tx);
      return read(tx);
    });
    await committed;
    return result;
  }
}
