import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { Client } from "pg";
import { expect, inject, it } from "vitest";
import { openDuckDb } from "../docs/duckdb.ts";
import { Bench } from "./frame/bench.ts";
import { tablesCaughtUp } from "./frame/caught-up.ts";
import { seed } from "./frame/seed.ts";
import { startStack } from "./frame/stack.ts";
import { exportOnce } from "./parts/parquet.ts";
import { fillDay } from "./tables/exported-day.ts";

/** More than a file has. */
const operations = 1_050_000;
/** A row group of a million rows, and what the writer makes of it. The services pass rows on. */
const maxMiB = { cli: 1_400, query: 400, gateway: 400 };

it("a day of more rows than a file has is exported whole, in bounded memory", async () => {
  await using cleanup = new AsyncDisposableStack();
  const bench = new Bench("parquet", { size: 0, runs: 1, warmUps: 0, effort: 1, folder: inject("serversFolder") });
  const stack = cleanup.use(await startStack(bench, { services: ["query", "gateway"] }));
  await seed(bench, stack.log, "parquet", 60);
  await tablesCaughtUp(stack);
  const client = new Client(stack.database);
  await client.connect();
  cleanup.defer(() => client.end());
  await fillDay(client, "2026-01-31", operations);

  const home = cleanup.use(await temporaryFolder()).folder;
  const { count, wallMs, values } = await exportOnce(stack, home, ["--from", "2026-01-31", "--to", "2026-01-31"]);
  console.log(`${Math.round((count / wallMs) * 1_000)} rows/s, peak memory in MiB: ${JSON.stringify(values)}`);
  for (const [name, max] of Object.entries(maxMiB)) expect(values[name], name).toBeLessThan(max);
  const folder = join(home, "tables");
  expect((await readdir(join(folder, "operations/day=2026-01-31"))).toSorted()).toEqual([
    "part-0.parquet",
    "part-1.parquet",
  ]);
  await using duckdb = cleanup.use(await openDuckDb(folder));
  const sums = "select count(*), count(distinct id), sum(duration_ms), min(started_at), max(ended_at)";
  await client.query("set timezone = 'UTC'");
  const { rows } = await client.query({
    text: `${sums} from tapedeck.operations where started_at >= '2026-01-31Z' and started_at < '2026-02-01Z'`,
    rowMode: "array",
    types: { getTypeParser: () => String },
  });
  expect((await duckdb.rows(`${sums} from tapedeck.operations`)).rows).toEqual(rows);
  const groups = await duckdb.rows(
    `select distinct row_group_num_rows from parquet_metadata('${folder}/operations/day=*/*.parquet') order by 1 desc`,
  );
  expect(groups.rows).toEqual([["1000000"], [String(operations - 1_000_000)]]);
});
