import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { searched } from "@tapedeck/shared/testing/searches";
import { Client } from "pg";
import { expect, it } from "vitest";
import { migrated } from "../testing/migrated.ts";
import { randomHost } from "../testing/random-host.ts";
import { seeded } from "../testing/random-scenario.ts";
import { randomServer } from "../testing/random-server.ts";
import { rktHost, rktSession } from "../testing/rkt-scenario.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { scenario } from "../testing/scenario.ts";
import { stage } from "../testing/stage.ts";
import { vagrantSession, vagrantShop } from "../testing/vagrant-scenario.ts";

const size = searched({ short: 2_700, long: 9_000 });
const window = size / 9;
/** An event may read this many rows of a table or an index: those of earlier failures, whose output may come late. */
const maxRows = 10;
/** The search for what a failure printed is bounded, but a session has so much text only after a while. */
const maxRowsOfText = 100;

const sessions: Record<string, () => readonly Event[]> = {
  "good loops of Skaffold": () => loops("succeeded"),
  "failed loops of Skaffold": () => loops("failed"),
  "loops of Skaffold without an end": () => loops(undefined),
  "a rkt host": () => {
    const script = scenario(rktHost);
    randomHost(seeded(3), script, rktSession("host-1", script), size);
    return script.events;
  },
  "a Vagrant server": () => {
    const script = scenario(vagrantShop);
    randomServer(seeded(3), script, vagrantSession("server-1", script), { size, firstJob: 1 });
    return script.events;
  },
};

it.each(Object.keys(sessions))(
  "late in a long session an event costs no more rows than early in it: %s",
  async (name) => {
    await using on = await stage();
    const events = sessions[name]?.() ?? [];
    const ends = await on.writeTogether(events, 5);
    await using database = await freshDatabase(migrated);
    const project = async (until: number, perBatch: number) => {
      const end = ends[Math.min(until, ends.length) - 1] ?? logStart;
      await projectUntil(database.url, on.log.reader, sequenceOf(end), {
        limits: { events: perBatch, bytes: 1_000_000 },
      });
    };
    const rowsOf = async (from: number, until: number) => {
      await project(from, 1_000);
      const before = await readRows(database.url);
      await project(until, 50);
      return new Map([...(await readRows(database.url))].map(([of, rows]) => [of, rows - (before.get(of) ?? 0)]));
    };
    const early = await rowsOf(size / 3 - window, size / 3);
    const late = await rowsOf(events.length - window, events.length);
    const grown = [...late].filter(([of, rows]) => {
      const max = of.startsWith("event_positions") ? maxRowsOfText : maxRows;
      return rows > 2 * (early.get(of) ?? 0) + max * window;
    });
    expect(grown).toEqual([]);
  },
);

function loops(outcome: "succeeded" | "failed" | undefined): readonly Event[] {
  const script = scenario();
  const session = script.session("long-1");
  session.started();
  session.configured();
  while (script.events.length < size) {
    session.loopStarted();
    session.build("web", "started");
    session.text("Step 1\n");
    if (outcome !== undefined) {
      session.build("web", outcome);
      session.loopEnded(outcome);
    }
  }
  return script.events;
}

/** Rows that were read of each table and index of it since the database was made. */
async function readRows(url: string): Promise<Map<string, number>> {
  const client = new Client(url);
  await client.connect();
  try {
    await client.query("select pg_stat_clear_snapshot()");
    const { rows } = await client.query<{ name: string; rows: string }>(`
      select relname as name, seq_tup_read as rows from pg_stat_user_tables
      union all select indexrelname, idx_tup_read from pg_stat_user_indexes`);
    return new Map(rows.map(({ name, rows }) => [name, Number(rows)]));
  } finally {
    await client.end();
  }
}
