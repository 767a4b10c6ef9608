import { migrated } from "@tapedeck/query/testing/migrated";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { dashboards, fillDashboards } from "./tables/dashboards.ts";
import { type Plan, scans } from "./testing/plan-scans.ts";
import { testParts } from "./testing/test-parts.ts";

testParts(["views"]);

const size = 200_000;
/** A month of a year, with room for the other rows of an answer: a later build, the loop of a time to green. */
const max = (size / 12) * 2;
/** A few rows at any size. */
const fewest: Readonly<Record<string, number>> = {
  "time_to_green, red now": 200,
  "loops, newest failed": 1_000,
  failures: 4_000,
  "failures by branch": 8_000,
  time_to_green: 800,
};

const cleanup = new AsyncDisposableStack();
let client: Client;

beforeAll(async () => {
  const fresh = cleanup.use(await freshDatabase(migrated));
  client = new Client(fresh.url);
  await client.connect();
  cleanup.defer(() => client.end());
  await client.query(
    "insert into tapedeck_internal.checkpoint (workspace, projection, epoch, position) values ('default', '', 'e', 0)",
  );
  await fillDashboards(fresh.url, size);
});
afterAll(() => cleanup.disposeAsync());

it.each(Object.entries(dashboards))("%s reads rows of its range, not all", async (name, statement) => {
  const { rows } = await client.query<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
    `explain (analyze, format json) ${statement}`,
  );
  const [{ Plan: plan } = { Plan: {} }] = rows[0]?.["QUERY PLAN"] ?? [];
  const read = scans(plan);
  expect(read.map(({ relation }) => relation)).not.toEqual([]);
  expect(read.filter(({ isWhole }) => isWhole)).toEqual([]);
  const count = read.reduce((sum, { rows }) => sum + rows, 0);
  expect({ count, isFew: count <= (fewest[name] ?? max) }).toEqual({ count, isFew: true });
});
