import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { browserProgram, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

const patience = { timeout: 20_000 };

type Loop = { readonly session: string; readonly runner: number; readonly loop: number };

describe.skipIf(browserProgram === undefined)("on the page", () => {
  const cleanup = new AsyncDisposableStack();
  let stack: Stack;
  let browser: Browser;
  let base = "";

  beforeAll(async () => {
    const recorded = (name: string) => startFakeSkaffold({ recording: loadRecording(join(recordings, name)) });
    const bob = cleanup.use(await recorded("04-deploy-failure-then-recovery"));
    const olga = cleanup.use(await recorded("20-old-v1.39.18"));
    const skaffold = [
      { developer: "bob", address: bob.address },
      { developer: "olga", address: olga.address },
    ];
    stack = cleanup.use(await startStack({ skaffold }));
    base = `http://${stack.http}`;
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await stack.connected();
    await Promise.all([bob.play(), olga.play()]);
    await stack.drained();
  });
  afterAll(() => cleanup.disposeAsync());

  const api = async (path: string) => JSON.parse((await stack.httpCall("GET", `/api/v1/${path}`)).body);

  it("a failed loop shows what differs from the last good one, and leads to its evidence", async () => {
    const [, { session, runner, loop }] = (await api("operations?source=bob/shop&kind=loop&outcome=failed")).items as [
      Loop,
      Loop,
    ];
    await using opened = await openPage(browser, `${base}/loops/${session}.${runner}.${loop}`);
    const { page, problems } = opened;
    const differences = page.getByLabel("What differs from the last good loop");
    await differences.getByText(/^deploy failed: kubectl apply: exit status 1 \(.*Deploymint/).waitFor();
    const { differences: expected } = await api(`compare?left=${session}.${runner}.${loop}`);
    await differences.getByRole("link", { name: /^Evidence in loop 2/ }).click();
    await page.locator(`aside[data-position="${expected[0].evidence[0].position}"]`).waitFor();
    await page.goBack();
    await differences.getByRole("link", { name: "Compare them" }).click();
    await page.getByLabel("Left side").getByRole("heading", { name: "bob/shop loop 2" }).waitFor();
    await page.getByLabel("Right side").getByRole("heading", { name: "bob/shop loop 1" }).waitFor();
    expect(problems).toEqual([]);
  });

  it("two developers are chosen, compared and swapped, and a copied URL shows the same", async () => {
    await using opened = await openPage(browser, `${base}/`);
    const { page, problems } = opened;
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByLabel("Source on the left").selectOption("bob/shop");
    await page.getByLabel("Left side").getByRole("heading", { name: "bob/shop loop 4" }).waitFor();
    await page.getByLabel("Source on the right").selectOption("olga/shop");
    await page
      .getByLabel("Right side")
      .getByRole("heading", { name: /^. olga\/shop loop|olga\/shop loop/ })
      .waitFor();
    const { differences, equal } = await api("compare?left=bob/shop&right=olga/shop");
    type Shown = { readonly kind: string; readonly left: string | null; readonly right: string | null };
    const wanted = differences.map(({ kind, left, right }: Shown) => {
      const none = kind === "failure" ? "did not fail" : "absent";
      return [left ?? none, right ?? none];
    });
    const shown = async () => {
      const columns = await Promise.all(
        ["left", "right"].map((side) => page.locator(`.difference-list .${side} .is`).allTextContents()),
      );
      return columns[0]?.map((left, at) => [left, columns[1]?.[at]]);
    };
    await expect.poll(shown, patience).toEqual(wanted);
    await page.getByText(`${equal} equal`, { exact: true }).waitFor();
    await using other = await openPage(browser, page.url());
    await expect.poll(() => other.page.locator(".difference-list li").count(), patience).toBe(differences.length);
    await page.getByRole("button", { name: "Swap sides" }).click();
    await page.getByLabel("Right side").getByRole("heading", { name: "bob/shop loop 4" }).waitFor();
    expect(new URL(page.url()).search).toBe("?left=olga/shop&right=bob/shop");
    await page
      .getByLabel("Right side")
      .getByRole("button", { name: /^loop 1: good/ })
      .click();
    await page.getByLabel("Right side").getByRole("heading", { name: "bob/shop loop 1" }).waitFor();
    expect([...problems, ...other.problems]).toEqual([]);
  });

  it.each([
    ["light", 1440],
    ["dark", 390],
  ] as const)("has no serious fault of accessibility in %s at %d px", async (colorScheme, width) => {
    const options = { colorScheme, viewport: { width, height: 900 } };
    const paths = {
      compare: "?left=bob/shop&right=olga/shop",
      "compare-empty": "",
      "compare-wrong": "?left=nobody/shop",
    };
    for (const [name, query] of Object.entries(paths)) {
      await using opened = await openPage(browser, `${base}/compare${query}`, options);
      const { page, problems } = opened;
      const there = { compare: ".difference-list", "compare-wrong": ".notice", "compare-empty": ".empty" }[name] ?? "";
      await page.locator(there).waitFor();
      expect([name, await faultsOf(page)]).toEqual([name, []]);
      expect([name, await page.evaluate("document.documentElement.scrollWidth - innerWidth"), problems]).toEqual([
        name,
        0,
        [],
      ]);
      await screenshot(page, `${name}-${colorScheme}-${width}`);
    }
  });
});
