import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { ReadStateRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { endOf } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { searchSeed } from "@tapedeck/shared/testing/searches";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stateReader } from "../api/state/read-state.ts";
import { type Database, openDatabase } from "../db/database.ts";
import { ProjectedPosition } from "../projecting/progress.ts";
import { rebuild } from "../projecting/rebuild.ts";
import { folds } from "../views/folds.ts";
import { views as allViews } from "../views/views.ts";
import { acme, logsIn } from "./logs.ts";
import { migrated } from "./migrated.ts";
import { type Random, seeded } from "./random-scenario.ts";
import { projectUntil } from "./run-projection.ts";
import { type Scenario, scenario } from "./scenario.ts";
import { type Stage, stage } from "./stage.ts";
import { contents, differencesOf, rows } from "./tables.ts";

const views = allViews({ textRows: false });

type TableOrder = Parameters<typeof contents>[1];

/** The rows of every table in `order` after these events, projected in batches of at most so many. */
export async function tablesAfter({ events }: Scenario, order: TableOrder, batch: number) {
  await using on = await stage();
  const end = (await on.write(events)).at(-1) ?? 0;
  await projectUntil(on.databaseUrl, on.log.reader, end, { views, limits: { events: batch, bytes: 1e9 } });
  return await contents(on.databaseUrl, order);
}

/** Events that were written to a log and projected, with what reading them takes. */
export type History = {
  readonly on: Stage;
  readonly events: readonly Event[];
  readonly end: number;
};

/** `record`: adds one session's events to the script. `spoiled`: tables that a rebuild has to fill again. */
export type HistoryOptions = {
  readonly source: SourceName;
  readonly order: TableOrder;
  readonly spoiled: readonly Parameters<Database["db"]["deleteFrom"]>[0][];
  readonly report: (script: Scenario, session: "first" | "erased" | "last", random: Random) => void;
};

/** The tests that the tables of any upstream pass after a random history. To be called within a `describe`. */
export function testHistory({ source, order, spoiled, report }: HistoryOptions): () => History {
  const random = seeded(searchSeed);
  let history: History | undefined;
  const reported = () => history ?? expect.fail("nothing was written");
  /** The tables after one straight run. */
  let expected: Awaited<ReturnType<typeof contents>>;

  beforeAll(async () => {
    const on = await stage();
    const script = scenario(source);
    for (const session of ["first", "erased", "last"] as const) {
      report(script, session, random);
      if (session === "erased") script.add({ kind: "session.erased", session, subject: session });
    }
    const end = (await on.write(script.events)).at(-1) ?? 0;
    history = { on, events: script.events, end };
    await projectUntil(on.databaseUrl, on.log.reader, end, { views });
    expected = await contents(on.databaseUrl, order);
  });

  afterAll(() => history?.on[Symbol.asyncDispose]());

  it(`every table is filled (seed ${searchSeed})`, () => {
    expect(Object.entries(expected).filter(([, found]) => found.length === 0)).toEqual([]);
  });

  it(`its tables are the same however the log is cut into batches (seed ${searchSeed})`, async () => {
    const { on, end } = reported();
    await using database = await freshDatabase(migrated);
    for (let next = 0; next < end; ) {
      next = Math.min(end, next + 1 + random(300));
      const limits = { events: 1 + random(60), bytes: 1_000_000 };
      await projectUntil(database.url, on.log.reader, next, { views, limits });
    }
    expect(differencesOf(await contents(database.url, order), expected)).toEqual([]);
  });

  it(`a rebuild creates the same tables (seed ${searchSeed})`, async ({ signal }) => {
    const { on, end } = reported();
    await using database = await freshDatabase(migrated);
    await projectUntil(database.url, on.log.reader, end, { views });
    await using opened = openDatabase({ url: database.url, connections: 1 });
    for (const table of spoiled) await opened.db.deleteFrom(table).execute();
    await rebuild({ databaseUrl: database.url, logs: logsIn(on.log.reader), views, signal });
    expect(differencesOf(await contents(database.url, order), expected)).toEqual([]);
  });

  return reported;
}

/** What the handlers of the API need to read a history. */
export function readDeps({ on, end }: History, database: Database) {
  const progress = new ProjectedPosition();
  progress.advance(endOf(end));
  return { workspace: acme, database: () => database, log: () => on.log.reader, progress, folds };
}

type StateQuery = Pick<ReadStateRequest, "source" | "collection" | "session"> & { readonly at: number };

export async function readRows(history: History, database: Database, { at, ...query }: StateQuery) {
  const request = {
    workspace: "acme",
    min_position: "",
    key_prefix: "",
    also: [],
    with_newest_source: false,
    at: history.on.at(at),
    ...query,
  };
  const { signal } = new AbortController();
  const answer = await Array.fromAsync(stateReader(folds)(readDeps(history, database), request, { signal }));
  return answer.flatMap(({ body }) =>
    body?.$case === "row" ? [{ key: body.value.key, bytes: body.value.bytes }] : [],
  );
}

/** Calls `check` at random positions within sessions that were not erased, with the events up to there. */
export async function atAnyPosition(
  { on, events, end }: History,
  check: (at: number, session: string, known: readonly Event[], database: Database) => Promise<void>,
): Promise<void> {
  await using database = openDatabase({ url: on.databaseUrl, connections: 2 });
  expect((await rows(database, "snapshots")).length).toBeGreaterThan(0);
  const kept = events
    .map((event, index) => ({ event, seq: index + 1 }))
    .filter(({ event }) => event.session !== "erased");
  await fc.assert(
    fc.asyncProperty(fc.nat(kept.length - 1), fc.nat(40), async (index, further) => {
      const { event, seq } = kept[index] ?? expect.fail();
      const at = Math.min(end, seq + further);
      const known = kept.filter((one) => one.seq <= at).map((one) => one.event);
      await check(at, event.session, known, database);
    }),
    { numRuns: 200 },
  );
}
