import { Client } from "pg";
import { expect, it } from "vitest";
import { freshDatabase } from "./database.ts";

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
};

it("a database is empty, and dropped when disposed of", async () => {
  let url = "";
  {
    await using database = await freshDatabase();
    url = database.url;
    expect(await query(url, "select from pg_tables where schemaname = 'public'")).toEqual([]);
  }
  await expect(query(url, "select 1")).rejects.toThrow(/does not exist/);
});

it("a template is filled once and copied for each database", async () => {
  let filled = 0;
  const template = {
    name: `numbers_${process.pid}`,
    fill: async (url: string) => {
      filled += 1;
      await query(url, "create table numbers as select generate_series(1, 3) as n");
    },
  };
  await using one = await freshDatabase(template);
  await using other = await freshDatabase(template);
  await query(one.url, "delete from numbers");
  expect(await query(other.url, "select n from numbers order by n")).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  expect(filled).toBe(1);
});
