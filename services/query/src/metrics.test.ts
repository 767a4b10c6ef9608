import { endOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it, vi } from "vitest";
import { openDatabase } from "./db/database.ts";
import { queryMetrics } from "./metrics.ts";
import { ProjectedPosition } from "./projecting/progress.ts";
import { migrated } from "./testing/migrated.ts";

it("the page has the sums of a workspace once its tables have caught up with its log", async () => {
  await using own = await freshDatabase(migrated);
  await using database = openDatabase({ url: own.url, connections: 1 });
  await sql`insert into operation_totals
    select 'acme', project, 'loop', 'succeeded', '', 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, now()
    from unnest(array['', 'shop']) project`.execute(database.db);
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
  const { registry } = queryMetrics({
    states: () => [state],
    setAside: async () => [],
    totals: { database: () => database, by: "project", series: 100 },
  });
  const hasSums = async () => (await registry.metrics()).includes('workspace="acme",project="shop",kind="loop"');
  expect(await hasSums()).toBe(false);
  end = 200;
  expect(await hasSums()).toBe(true);
  end = 5_000;
  expect(await hasSums()).toBe(true);
  state.waitingFor = "the database is away";
  expect(await hasSums()).toBe(false);
});

it("a source whose state is not compared any more is forgotten after an hour", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    const totals = { database: () => expect.fail("no tables"), by: "project" as const, series: 100 };
    const { registry, compared } = queryMetrics({ states: () => [], setAside: async () => [], totals });
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
