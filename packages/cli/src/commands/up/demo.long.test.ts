import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "@tapedeck/query/db/database";
import { documentedQueries, pagesWithQueries } from "@tapedeck/query/testing/documented-queries";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";
import { startUp } from "../../testing/up.ts";

const cwd = mkdtempSync(join(tmpdir(), "tapedeck-demo-"));
chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

type Page = { readonly items: readonly { readonly source: string; readonly outcome?: string }[] };

it("shows a build that was found in the cache, and something for each query of the docs, within minutes", async () => {
  const up = await startUp({ cwd });
  const found = await until(
    async () => {
      const page = await fetch(`${up.env.TAPEDECK_URL}/api/v1/events?after=start&limit=1000&kind=build.cached`);
      return ((await page.json()) as Page).items[0];
    },
    { message: "a cached build", deadlineMs: 300_000 },
  );
  expect(found).toMatchObject({ source: expect.stringMatching(/^demo\/.*\/skaffold$/), outcome: "succeeded" });
  const url = /postgres:\/\/tapedeck_analyst\S+/.exec(up.cli.stdout())?.[0] ?? "";
  await using database = openDatabase({ url, connections: 1 });
  const client = await database.connect();
  for (const query of (await Promise.all(pagesWithQueries.map(documentedQueries))).flat()) {
    await until(async () => (await client.query(query)).rows.length > 0, { message: query, deadlineMs: 120_000 });
  }
  await client.end();
  expect(await up.stop()).toBe(0);
});
