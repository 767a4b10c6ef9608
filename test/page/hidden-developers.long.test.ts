import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bearing, startTokenStack, type TokenStack } from "../stack/token-stack.ts";
import { browserProgram, faultsOf, launchBrowser, type Opened, openPage, screenshot } from "./browser.ts";
import { weeks, writeWeeks } from "./weeks.ts";

describe.skipIf(browserProgram === undefined)("the page where developers are hidden", () => {
  const cleanup = new AsyncDisposableStack();
  let tokens: TokenStack;
  let browser: Browser;
  const range = new URLSearchParams({ from: weeks.from, to: weeks.to, zone: "UTC" });

  beforeAll(async () => {
    tokens = cleanup.use(await startTokenStack({ TAPEDECK_PRIVACY_DEVELOPERS: "hidden" }));
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await writeWeeks(tokens.on);
  });
  afterAll(() => cleanup.disposeAsync());

  async function signedIn(path: string, token: string): Promise<Opened> {
    const opened = await openPage(browser, `http://${tokens.on.stack.http}${path}`);
    await opened.page.getByLabel("Token").fill(token);
    await opened.page.getByRole("button", { name: "Sign in" }).click();
    return opened;
  }

  async function loopsIn(text: string, query = ""): Promise<number> {
    const path = `/api/v1/stats/loops?from=${weeks.from}T00:00:00Z&to=${weeks.to}T23:59:59Z${query}`;
    const { body } = await tokens.on.stack.httpCall("GET", path, bearing(text));
    return Number(JSON.parse(body).items[0].loops);
  }

  const tagOf = (page: Page, chart: string) => page.locator(`[data-chart="${chart}"] .whose`);

  it("says which figures are the team's, and which the viewer's own", async () => {
    const [hers, admins] = await Promise.all([tokens.token("acme", ["viewer"]), tokens.token("acme", ["admin"])]);
    const [team, own] = [await loopsIn(admins.text), await loopsIn(admins.text, "&developer=alice")];
    expect(own).toBeLessThan(team);
    await using opened = await signedIn(`/trends?${range}`, hers.text);
    const { page, errors } = opened;
    await page.getByText(`${team} loops in this time`).waitFor();
    await page
      .getByText(/^Developers are hidden from each other here\. Figures are the team's sums; .* are alice's\.$/)
      .waitFor();
    expect([await tagOf(page, "waits").textContent(), await tagOf(page, "failures").textContent()]).toEqual([
      "the team's",
      "only yours",
    ]);
    await page.getByRole("button", { name: "SQL of Waits for" }).click();
    await page.locator('[data-chart="waits"]').getByText("It counts your own rows.").waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await screenshot(page, "trends-hidden", { fullPage: true });
    await page.goto(`http://${tokens.on.stack.http}/trends?${range}&developer=alice`);
    await page.getByText(`${own} loops in this time`).waitFor();
    await page.getByText(/all figures are alice's\.$/).waitFor();
    expect(await tagOf(page, "waits").textContent()).toBe("only yours");
    expect(errors).toEqual([]);
  });

  it("says why a viewer who is nobody sees nothing, and an admin sees no such words", async () => {
    const nobody = await tokens.token("acme", ["viewer"], 3_600_000, null);
    await using opened = await signedIn("/", nobody.text);
    const { page, errors } = opened;
    const reason = page.getByText("Developers are hidden from each other here, and your token names no developer.");
    await page.getByRole("heading", { name: "You see nobody's recordings" }).waitFor();
    await reason.waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await screenshot(page, "now-hidden");
    for (const path of ["/loops", "/health", "/compare"]) {
      await page.goto(`http://${tokens.on.stack.http}${path}`);
      await reason.waitFor();
    }
    await page.goto(`http://${tokens.on.stack.http}/trends?${range}`);
    await page.getByText(/your own, of which there are none: your token names no developer\.$/).waitFor();
    expect(errors).toEqual([]);

    const admin = await tokens.token("acme", ["admin"]);
    await using all = await signedIn(`/trends?${range}`, admin.text);
    await all.page.getByText(/loops in this time$/).waitFor();
    expect(await all.page.locator(".whose").count()).toBe(0);
  });
});
