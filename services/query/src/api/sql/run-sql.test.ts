import { afterAll, beforeAll, expect, it } from "vitest";
import { queryClient } from "../../testing/client.ts";
import { scenario } from "../../testing/scenario.ts";
import { reaches, type Stage, stage } from "../../testing/stage.ts";

let on: Stage;
let ask: ReturnType<typeof queryClient>;

beforeAll(async () => {
  on = await stage();
  const query = await on.startQuery();
  const alice = scenario();
  alice.add({ kind: "source.added" });
  await reaches(query, (await on.write(alice.events)).at(-1) ?? 0);
  ask = queryClient(query.address);
});
afterAll(async () => {
  ask[Symbol.dispose]();
  await on[Symbol.asyncDispose]();
});

async function rowOf(sql: string): Promise<unknown> {
  const { rows } = await ask.runSql({ sql, max_rows: 1 });
  return JSON.parse(rows[0]?.json ?? "null");
}

async function errorOf(sql: string): Promise<string> {
  return rowOf(sql).then(
    () => "",
    (error: Error) => error.message,
  );
}

it("a numeric is a number where that has the same digits, and otherwise its text", async () => {
  const exact = { "0.0": 0, "1.50": 1.5, "-12": -12, "100": 100, "0.000000123": 1.23e-7, "-0.00000010": -1e-7 };
  const texts = ["0.12345678901234567890", "0.1000000000000000055511151231257827", "123456789012345678901234567890.5"];
  const values = [...Object.keys(exact), ...texts, "NaN"];
  const row = await rowOf(`select ${values.map((text) => `'${text}'::numeric`).join(", ")}`);
  expect(row).toEqual([...Object.values(exact), ...texts, "NaN"]);
});

it("an error quotes the beginning of a value, without what nobody sees", async () => {
  const long = await errorOf(
    "select ('a' || U&'\\200b\\+0e0041\\202e' || E'\\n\\x1b[2Jb' || repeat('x', 1000000))::int",
  );
  expect(long).toMatch(/Postgres refuses the query: "invalid input syntax for type integer: \\"a bx+… \(cut\)"/);
  expect(long.length).toBeLessThan(700);
  expect(await errorOf("select 'a'::int")).toMatch(/for type integer: \\"a\\""/);
});

it("spaces within a query take no quadratic time", async () => {
  // The processor time of this process, in which query runs.
  const before = process.cpuUsage();
  expect(await rowOf(`select ${" ".repeat(100_000)}1 ; ;\n`)).toEqual([1]);
  const { user } = process.cpuUsage(before);
  expect(user / 1_000).toBeLessThan(2_000);
});
