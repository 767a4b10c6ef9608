import { Client, types } from "pg";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { browserProgram, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";
import { weeks, writeWeeks } from "./weeks.ts";

describe.skipIf(browserProgram === undefined)("the trends", () => {
  const cleanup = new AsyncDisposableStack();
  let seeded: SeededStack;
  let browser: Browser;
  let base = "";
  let run: (statement: string) => Promise<Record<string, unknown>[]>;

  beforeAll(async () => {
    seeded = cleanup.use(await startSeededStack());
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    base = `http://${seeded.stack.http}`;
    await writeWeeks(seeded);
    const client = cleanup.adopt(
      new Client({ connectionString: seeded.stack.database, types: { getTypeParser } }),
      (one) => one.end(),
    );
    await client.connect();
    run = async (statement) => (await client.query(statement)).rows;
  });
  afterAll(() => cleanup.disposeAsync());

  /** Keeps dates as Postgres writes them: pg would convert them to moments in this machine's time zone. */
  const getTypeParser = ((oid: number, format?: "text") =>
    oid === types.builtins.DATE ? String : types.getTypeParser(oid, format)) as typeof types.getTypeParser;

  const path = (more: Record<string, string>) =>
    `/trends?${new URLSearchParams({ from: weeks.from, to: weeks.to, zone: "Asia/Kolkata", ...more })}`;
  const shownSql = async (chart: Locator) => (await chart.locator(".sql pre").textContent()) ?? "";
  const panel = (page: Page, name: string) => page.locator(`[data-chart="${name}"]`);

  /** Returns the numbers of a chart by its bins, as in the table beside it. */
  const numbersOf = async (chart: Locator, columns: readonly string[]) => {
    await chart.locator("table").first().waitFor({ state: "attached" });
    const rows = await chart.locator("tr[data-bin]").evaluateAll((found) =>
      found.map((row) => ({
        bin: row.dataset.bin ?? "",
        values: [...row.querySelectorAll("td")].map(({ dataset }) => dataset.value ?? ""),
      })),
    );
    return rows.map(({ bin, values }) => ({
      bin,
      ...Object.fromEntries(
        columns.map((name, index) => [name, (values[index] ?? "") === "" ? null : Number(values[index])]),
      ),
    }));
  };
  const binOf = (row: Record<string, unknown>) => {
    const found = row.hour ?? row.day ?? row.week;
    return found instanceof Date ? `${found.toISOString().slice(0, 19)}Z` : String(found).slice(0, 10);
  };
  /** Returns the rows of a panel's table: their names, and the numbers in them. */
  const rowsOf = (table: Locator, name: "artifact" | "side" | "phase" | "command") =>
    table
      .locator(`tr[data-${name}]`)
      .evaluateAll(
        (rows, key) =>
          rows.map((row) => [
            row.dataset[key],
            ...[...row.querySelectorAll("td[data-value]")].map(({ dataset }) =>
              dataset.value === "" ? null : Number(dataset.value),
            ),
          ]),
        name,
      );
  const whole = (value: unknown) => (value === null ? null : Math.round(Number(value)));

  it.each([
    ["by day", {}],
    ["by week, of one developer", { group: "week", developer: "bob" }],
    ["by day, of one branch, side by side", { label: "branch=main", by: "developer" }],
    [
      "by hour, of one project",
      { from: "2026-11-24", to: "2026-11-26", group: "hour", project: "site", by: "project" },
    ],
  ])("show the numbers of their SQL: %s", async (_, more) => {
    await using opened = await openPage(browser, base + path(more));
    const { page, errors } = opened;
    const by = async (name: string) => await run(await shownSql(panel(page, name)));
    expect(await numbersOf(panel(page, "wait"), ["p50", "p90", "p99"])).toEqual(
      (await by("wait"))
        .filter(({ p50_ms }) => p50_ms !== null)
        .map((row) => ({ bin: binOf(row), p50: whole(row.p50_ms), p90: whole(row.p90_ms), p99: whole(row.p99_ms) })),
    );
    expect(await numbersOf(panel(page, "green"), ["p50", "p90", "still_red"])).toEqual(
      (await by("green")).map((row) => ({
        bin: binOf(row),
        p50: whole(row.p50_ms),
        p90: whole(row.p90_ms),
        still_red: Number(row.still_red),
      })),
    );
    expect(await numbersOf(panel(page, "overtaken"), ["share", "loops"])).toEqual(
      (await by("overtaken")).map((row) => ({ bin: binOf(row), share: row.share, loops: Number(row.loops) })),
    );
    const failures = await numbersOf(panel(page, "failures"), [..."1234567"]);
    const counted: Record<string, number> = {};
    for (const row of await by("failures")) counted[binOf(row)] = (counted[binOf(row)] ?? 0) + Number(row.failures);
    expect(
      Object.fromEntries(
        failures.map(({ bin, ...counts }) => [
          bin,
          Object.values(counts).reduce<number>((sum, one) => sum + Number(one ?? 0), 0),
        ]),
      ),
    ).toEqual(counted);
    for (const [name, columns] of [
      ["slow", ["p50_ms", "p90_ms", "builds"]],
      ["flaky", ["flakes", "builds"]],
    ] as const) {
      const shown = await rowsOf(panel(page, name), "artifact");
      const expected = (await by(name)).map((row) => [
        `${row.project}/${row.artifact}`,
        ...columns.map((column) => whole(row[column])),
      ]);
      expect(shown).toEqual(expected);
    }
    if ("by" in more) {
      const columns = ["p50_ms", "p90_ms", "loops", "failed"] as const;
      const phases = ["build", "deploy", "check", "other"];
      const expected = (await by("sides")).map((row) => [
        row[more.by],
        ...columns.map((column) => whole(row[column])),
        ...["overtaken", ...phases].map((column) => Number(row[column])),
      ]);
      expect(expected.length).toBeGreaterThan(0);
      expect(await rowsOf(panel(page, "sides"), "side")).toEqual(expected);
    }
    const waits = (await by("waits")).map((row) => [row.phase, Number(row.ms), Number(row.share)]);
    expect(waits.length).toBeGreaterThan(1);
    expect(await rowsOf(panel(page, "waits"), "phase")).toEqual(waits);
    // The commands are Vagrant's, of one developer on one project.
    const hasCommands = !("developer" in more || "project" in more || "label" in more);
    expect(await panel(page, "commands").count()).toBe(hasCommands ? 1 : 0);
    if (hasCommands) {
      const expected = (await by("commands")).map((row) => [
        `${row.command}/${row.machine ?? ""}`,
        ...["p50_ms", "p90_ms", "runs", "failed"].map((column) => whole(row[column])),
      ]);
      expect(expected.length).toBeGreaterThan(1);
      expect(await rowsOf(panel(page, "commands"), "command")).toEqual(expected);
    }
    expect(errors).toEqual([]);
  });

  it("stay where the numbers of one are refused, which says so in its place", async () => {
    await using opened = await openPage(browser, "about:blank");
    const { page, errors } = opened;
    let refuses = true;
    const json = { error: { code: "limit_exceeded", message: "more than 10000 groups" } };
    await page.route("**/api/v1/stats/green*", (route) =>
      refuses ? route.fulfill({ status: 429, json }) : route.continue(),
    );
    await page.goto(base + path({}));
    const green = panel(page, "green");
    await green.getByRole("alert").getByText("Choose a shorter time, or one developer or project.").waitFor();
    expect(await green.locator("canvas, table").count()).toBe(0);
    for (const name of ["wait", "overtaken", "failures"]) {
      await panel(page, name).locator("canvas").waitFor();
      expect(await panel(page, name).getByRole("alert").count()).toBe(0);
    }
    expect(await panel(page, "slow").locator("tr[data-artifact]").count()).toBeGreaterThan(1);
    expect(await faultsOf(page)).toEqual([]);
    await screenshot(page, "trends-refused", { fullPage: true });
    refuses = false;
    await page.reload();
    await green.locator("canvas").waitFor();
    expect(errors).toEqual([]);
  });

  it("list the loops behind what is selected, by pointer and by keyboard, and a copied URL shows the same", async () => {
    await using opened = await openPage(browser, base + path({}));
    const { page, errors } = opened;
    const behind = page.getByLabel("Loops behind it");
    const cause = panel(page, "failures").locator(".causes button").first();
    const count = Number(await cause.locator(".number").textContent());
    expect(count).toBeGreaterThan(1);
    await cause.click();
    await expect.poll(() => behind.locator("tbody tr").count()).toBe(count);

    const chart = panel(page, "wait").getByRole("slider");
    await chart.focus();
    await chart.press("Home");
    await chart.press("Shift+ArrowRight");
    await chart.press("Shift+ArrowRight");
    await chart.press("Shift+ArrowRight");
    await chart.press("Enter");
    const [loops] = await run(`select count(*)::int as count from tapedeck.loop_times where outcome = 'succeeded'
      and started_at < '2026-11-24T00:00:00+05:30'`);
    await expect.poll(() => behind.locator("tbody tr").count()).toBe(loops?.count);
    expect(page.url()).toContain("since=2026-11-20&until=2026-11-23");
    await using other = await openPage(browser, page.url(), { timezoneId: "America/New_York" });
    const first = other.page.getByLabel("Loops behind it").locator("tbody a").first();
    expect(await first.textContent()).toBe(await behind.locator("tbody a").first().textContent());
    await first.click();
    await other.page.getByRole("heading", { name: /loop \d+/ }).waitFor();

    const plot = panel(page, "overtaken").locator(".u-over");
    await plot.scrollIntoViewIfNeeded();
    const box = (await plot.boundingBox()) ?? expect.fail("no chart");
    await page.mouse.move(box.x + 4, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 4, box.y + 40, { steps: 4 });
    await page.mouse.up();
    const [overtaken] = await run("select count(*)::int as count from tapedeck.loop_times where overtaken");
    await expect.poll(() => behind.locator("tbody tr").count()).toBe(overtaken?.count);
    expect(page.url()).toContain(`since=${weeks.from}&until=${weeks.to}`);
    expect([...errors, ...other.errors]).toEqual([]);
  });

  it("lead from a row to what it counts, by pointer and by keyboard, and a copied URL shows the same", async () => {
    const days = { from: "2026-11-24", to: "2026-11-25", zone: "UTC", by: "developer" };
    await using opened = await openPage(browser, base + path(days));
    const { page, errors } = opened;
    const behind = page.getByLabel("Loops behind it");
    const shows = async (title: RegExp, count: number) => {
      await behind.getByRole("heading", { name: title }).waitFor();
      await expect.poll(() => behind.locator("tbody tr").count()).toBe(count);
    };
    const inTime = "started_at >= '2026-11-24' and started_at < '2026-11-26'";
    const [checked] = await run(
      `select count(*)::int as count from tapedeck.loop_times where check_ms > 0 and ${inTime}`,
    );
    expect(checked?.count).toBeGreaterThan(1);
    await panel(page, "waits").getByRole("button", { name: "check" }).click();
    await shows(/^Loops that waited for check/, Number(checked?.count));
    await using other = await openPage(browser, page.url(), { timezoneId: "America/New_York" });
    const again = other.page.getByLabel("Loops behind it").locator("tbody tr").first();
    await again.waitFor();
    expect(await again.locator("a").textContent()).toBe(await behind.locator("tbody a").first().textContent());
    expect(await again.locator("td.number").textContent()).toBe(
      await behind.locator("tbody td.number").first().textContent(),
    );
    const picked = other.page.locator('button[aria-pressed="true"]', { hasText: "check" });
    expect(await picked.count()).toBe(1);

    const bob = panel(page, "sides").getByRole("button", { name: /loops of bob$/ });
    const loops = Number(await bob.textContent());
    expect(loops).toBeGreaterThan(1);
    await bob.focus();
    await page.keyboard.press("Enter");
    await shows(/^Loops of bob/, loops);
    const sources = await behind.locator("tbody a").allTextContents();
    expect(sources.filter((name) => !name.startsWith("bob/shop · loop "))).toEqual([]);

    await page.goto(base + path({ zone: "UTC" }));
    const provision = panel(page, "commands").getByRole("button", { name: "provision" });
    await provision.focus();
    await page.keyboard.press("Space");
    await shows(/^Runs of provision/, 2);
    await screenshot(page, "trends-runs", { fullPage: true });
    expect(await faultsOf(page)).toEqual([]);
    await behind.locator("tbody a").first().click();
    await page.getByRole("heading", { name: /dana\/machines/ }).waitFor();
    expect(page.url()).toMatch(/\/sessions\/0VAGRANT\?at=/);
    expect([...errors, ...other.errors]).toEqual([]);
  });
});
