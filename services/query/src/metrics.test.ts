import { setImmediate as nextTurn } from "node:timers/promises";
import { endOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { sql } from "kysely";
import { expect, it, vi } from "vitest";
import { openDatabase } from "./db/database.ts";
import { type QueryMetrics, queryMetrics } from "./metrics.ts";
import { ProjectedPosition } from "./projecting/progress.ts";
import { migrated } from "./testing/migrated.ts";

/** A database with sums of a project, to be disposed of. */
async function sums() {
  await using stack = new AsyncDisposableStack();
  const { url } = stack.use(await freshDatabase(migrated));
  const database = stack.use(openDatabase({ url, connections: 1 }));
  await sql`insert into operation_totals
    select 'acme', project, 'loop', 'succeeded', '', 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, now()
    from unnest(array['', 'shop']) project`.execute(database.db);
  const owned = stack.move();
  return { database, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const hasSumsOf = async ({ registry }: Pick<QueryMetrics, "registry">) =>
  (await registry.metrics()).includes('workspace="acme",project="shop",kind="loop"');

it("the page has the sums of a workspace once its tables have caught up with its log", async () => {
  await using own = await sums();
  const progress = new ProjectedPosition();
  progress.advance(endOf(10));
  let end = 5_000;
  const state = {
    workspace: "acme",
    progress,
    epoch: "e1",
    waitingFor: undefined as string | undefined,
    log: { bounds: async () => ({ lastOffset: endOf(end) }) } as never,
  };
  const metrics = queryMetrics({
    states: () => [state],
    isReporter: () => true,
    setAside: async () => [],
    totals: { database: () => own.database, by: "project", series: 100 },
  });
  const hasSums = () => hasSumsOf(metrics);
  expect(await hasSums()).toBe(false);
  end = 200;
  expect(await hasSums()).toBe(true);
  end = 5_000;
  expect(await hasSums()).toBe(true);
  state.waitingFor = "the database is away";
  expect(await hasSums()).toBe(false);
});

it("tables that went back have no sums on the page until they are where they were: sums never fall", async () => {
  await using own = await sums();
  const progress = new ProjectedPosition();
  const state = {
    workspace: "acme",
    progress,
    epoch: "e1",
    waitingFor: undefined,
    log: { bounds: async () => ({ lastOffset: endOf(20) }) } as never,
  };
  const metrics = queryMetrics({
    states: () => [state],
    isReporter: () => true,
    setAside: async () => [],
    totals: { database: () => own.database, by: "project", series: 100 },
  });
  const has: boolean[] = [];
  for (const message of [10, 12, 5, 11, 12, 13]) {
    progress.advance(endOf(message));
    has.push(await hasSumsOf(metrics));
  }
  expect(has).toEqual([true, true, false, false, true, true]);
});

it("two pages that are made at the same time both have the lags of all workspaces", async () => {
  const waiting: (() => void)[] = [];
  const bounds = () => new Promise((resolve) => waiting.push(() => resolve({ lastOffset: endOf(7) })));
  const states = ["acme", "globex"].map((workspace) => ({
    workspace,
    progress: new ProjectedPosition(),
    epoch: "e1",
    waitingFor: undefined,
    log: { bounds } as never,
  }));
  const { registry } = queryMetrics({
    states: () => states,
    isReporter: () => false,
    setAside: async () => [],
    totals: { database: () => expect.fail("no tables"), by: "project", series: 100 },
  });
  const begin = async () => {
    const page = registry.metrics();
    await until(() => waiting.length === states.length, { message: "the questions of a page" });
    return { page, answers: waiting.splice(0) };
  };
  const first = await begin();
  first.answers[0]?.();
  await nextTurn();
  const second = await begin();
  first.answers[1]?.();
  for (const { page, answers } of [first, second]) {
    for (const answer of answers) answer();
    const lags = (await page).match(/query_lag_events\{.*workspace="\w+".*\} 7/g);
    expect(lags).toHaveLength(states.length);
  }
});

it("a source whose state is not compared any more is forgotten after an hour", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    const totals = { database: () => expect.fail("no tables"), by: "project" as const, series: 100 };
    const { registry, compared } = queryMetrics({
      states: () => [],
      isReporter: () => true,
      setAside: async () => [],
      totals,
    });
    const named = async () => (await registry.metrics()).match(/fold_\w+\{[^}]*source="[^}]*\} \d/g) ?? [];
    compared("acme/alice/shop/skaffold", true);
    vi.advanceTimersByTime(3_000_000);
    compared("acme/bob/shop/skaffold", false);
    expect(await named()).toHaveLength(3);
    vi.advanceTimersByTime(1_000_000);
    expect(await named()).toEqual([expect.stringMatching(/^fold_checks_total\{.*bob.*\} 1$/)]);
  } finally {
    vi.useRealTimers();
  }
});
