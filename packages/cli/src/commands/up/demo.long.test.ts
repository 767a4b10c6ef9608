import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "@tapedeck/query/for-cli/maintain";
import { documentedQueries, pagesWithQueries } from "@tapedeck/query/testing/documented-queries";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, expect, it } from "vitest";
import { startUp } from "../../testing/up.ts";

const cwd = mkdtempSync(join(tmpdir(), "tapedeck-demo-"));
chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

type Items<Item> = { readonly items: readonly Item[] };

/** Soon after the start there are labels, boxes and failures to look at. */
async function expectSomethingOfEachKind(url: string): Promise<void> {
  const get = async <Answer>(path: string) => (await (await fetch(`${url}/api/v1/${path}`)).json()) as Answer;
  await until(
    async () => {
      const sessions = await get<Items<{ source: string; labels: Record<string, string> }>>("sessions");
      expect(sessions.items).toContainEqual(
        expect.objectContaining({
          source: "demo/erin/cart/skaffold",
          labels: expect.objectContaining({ branch: "spike/api", ticket: "SHOP-12" }),
        }),
      );
      return true;
    },
    { message: "labels" },
  );
  const kinds = ["box.added", "build.failed", "command.finished"].map((kind) => `kind=${kind}`).join("&");
  await until(
    async () => {
      const { items } = await get<Items<{ kind: string; source: string; outcome?: string }>>(
        `events?after=start&limit=1000&${kinds}`,
      );
      const recorded = items.map(({ kind, source, outcome }) => [source, kind, outcome]);
      expect(recorded).toContainEqual(["demo/erin/cart/skaffold", "build.failed", "failed"]);
      // The first one.
      const [box, command] = ["box.added", "command.finished"].map((kind) => recorded.find((one) => one[1] === kind));
      expect(box?.[0]).toBe("demo/dana/shop/vagrant");
      expect(command).toEqual(["demo/dana/shop/vagrant", "command.finished", "failed"]);
      return true;
    },
    { message: "what fails", deadlineMs: 120_000 },
  );
}

it("shows labels, boxes, failures, a cached build, and something for each query of the docs, within minutes", async () => {
  const up = await startUp({ cwd });
  await expectSomethingOfEachKind(up.env.TAPEDECK_URL ?? "");
  const found = await until(
    async () => {
      const page = await fetch(`${up.env.TAPEDECK_URL}/api/v1/events?after=start&limit=1000&kind=build.cached`);
      return ((await page.json()) as Items<{ source: string; outcome?: string }>).items[0];
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
