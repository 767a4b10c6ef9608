import { endOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { touchCheckpoint } from "../db/checkpoint.ts";
import { openDatabase } from "../db/database.ts";
import { swapLock } from "../db/read.ts";
import { forgetSessions } from "../projecting/forget/sessions.ts";
import { rebuild } from "../projecting/rebuild.ts";
import { queryClient } from "../testing/client.ts";
import { acme, logsIn } from "../testing/logs.ts";
import { scenario, shop } from "../testing/scenario.ts";
import { reaches, type Stage, stage } from "../testing/stage.ts";
import { evolve } from "../views/skaffold/evolve.ts";
import { initialState, type SkaffoldState } from "../views/skaffold/state.ts";
import { toV1State } from "../views/skaffold/to-v1-state.ts";
import { toV2State } from "../views/skaffold/to-v2-state.ts";
import { views } from "../views/views.ts";
import { readStateTables } from "./state/state-tables.ts";

/** A session that builds, and is read after each step by the query that projects and by one that stands by. */
async function building(on: Stage) {
  const script = scenario();
  const session = script.session("01A");
  session.started();
  session.configured();
  session.loopStarted();
  let written = 0;
  const write = async () => (await on.write(script.events.slice(written))).at(-1) ?? 0;
  const add = async (step: () => void) => {
    step();
    const last = await write();
    written = script.events.length;
    return last;
  };
  const folded = (): SkaffoldState =>
    script.events.reduce((state, event) => (event.session === "01A" ? evolve(state, event) : state), initialState);
  return {
    session,
    add,
    script,
    rowsNow: () => [toV1State(folded()), toV2State(folded())].map((one) => Buffer.from(one)),
  };
}

const both = { source: shop, collection: "skaffold.v1", also: ["skaffold.v2"] };

it("a state that was asked for before is that of now, whichever query answers", async () => {
  await using on = await stage();
  const { session, add, rowsNow } = await building(on);
  let seq = await add(() => session.build("web", "started"));
  await using projecting = await on.startQuery();
  await using standby = await on.startQuery();
  using one = queryClient(projecting.address);
  using other = queryClient(standby.address);
  // The tables have it, so both have it, at once.
  const answers = async () => {
    await reaches(projecting, seq);
    return Promise.all([one, one, other, other].map((ask) => ask.readState(both)));
  };

  for (const outcome of ["failed", "started", "succeeded"] as const) {
    for (const { rows } of await answers()) expect(rows).toEqual(rowsNow());
    seq = await add(() => session.build("web", outcome));
  }
  for (const { rows, head } of await answers()) expect([rows, head?.session_ended]).toEqual([rowsNow(), false]);
  seq = await add(() => session.ended());
  // The position is that of the tables, which nothing else than the log moves.
  for (const { rows, head } of await answers()) {
    expect([rows, head?.session_ended, head?.position]).toEqual([rowsNow(), true, on.endAt(seq)]);
  }
});

it("a state that is held is let go of when the tables change, also without an event", async ({ signal }) => {
  await using on = await stage();
  const { session, add, rowsNow, script } = await building(on);
  await add(() => session.build("web", "succeeded"));
  const seq = await add(() => session.ended());
  await using query = await on.startQuery();
  await reaches(query, seq);
  using ask = queryClient(query.address);
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const now = async () => (await ask.readState(both)).rows;
  const spoil = () =>
    database.db
      .updateTable("fold_states")
      .set({ state: JSON.stringify(initialState) })
      .execute();

  expect(await now()).toEqual(rowsNow());
  await spoil();
  expect(await now()).toEqual(rowsNow()); // from memory
  await database.db.transaction().execute((tx) => touchCheckpoint(tx, acme));
  expect(await now()).not.toEqual(rowsNow());
  await rebuild({
    databaseUrl: on.databaseUrl,
    logs: logsIn(on.log.reader),
    views: views({ textRows: false }),
    signal,
  });
  expect(await now()).toEqual(rowsNow());

  expect(await forgetSessions(on.databaseUrl, acme, endOf(seq + 1))).toBe(1);
  expect((await ask.readState(both)).head).toMatchObject({ session: "" });

  const erased = scenario();
  erased.session("01B").started();
  erased.session("01B").configured();
  const begun = (await on.write(erased.events)).at(-1) ?? 0;
  expect((await ask.readState({ ...both, min_position: on.at(begun) })).head).toMatchObject({ session: "01B" });
  const mark = script.add({ kind: "session.erased", session: "01B", subject: "01B" });
  const last = (await on.write([mark])).at(-1) ?? 0;
  expect((await ask.readState({ ...both, min_position: on.at(last) })).head).toMatchObject({ session: "" });
});

it("one question to the tables is about one set of them", async () => {
  await using on = await stage();
  const { session, add } = await building(on);
  const seq = await add(() => session.build("web", "succeeded"));
  await using query = await on.startQuery();
  await reaches(query, seq);
  await using database = openDatabase({ url: on.databaseUrl, connections: 2 });
  const question = {
    workspace: "acme",
    source: shop,
    session: "",
    with_newest_source: false,
    at: undefined,
    foldVersion: 1,
    known: [],
  };
  await using swapping = openDatabase({ url: on.databaseUrl, connections: 1 });
  let pending: ReturnType<typeof readStateTables> | undefined;
  await swapping.db.transaction().execute(async (tx) => {
    await swapLock(tx);
    pending = readStateTables(database.db, question);
    const waiting = async () => {
      const { rows } = await sql<{ tables: string[] }>`
        select array(select relation::regclass::text from pg_locks held where held.pid = waiting.pid and granted
          and relation::regclass::text in ('checkpoint', 'sources', 'sessions', 'fold_states', 'events')) as tables
        from pg_locks waiting where not granted and relation = 'tapedeck_private.swap'::regclass`.execute(database.db);
      return rows[0]?.tables;
    };
    expect(await until(waiting, { message: "the question to wait for the swap" })).toEqual([]);
  });
  expect(sequenceOf((await pending)?.checkpoint ?? endOf(0))).toBe(seq);
});
