import { describe, expect, it } from "vitest";
import { browserProgram, openPage } from "./browser.ts";
import { compared } from "./compared.ts";

type Difference = {
  readonly kind: string;
  readonly subject: string;
  readonly evidence: readonly { readonly side: string; readonly position: string }[];
};
type Loop = { readonly session: string; readonly runner: number; readonly loop: number };

describe.skipIf(browserProgram === undefined)("on the page", () => {
  const on = compared();

  const api = async (path: string) => JSON.parse((await on.stack.httpCall("GET", `/api/v1/${path}`)).body);

  it("a failed loop shows what differs from the last good one, and leads to its evidence", async () => {
    const [, { session, runner, loop }] = (await api("operations?source=bob/shop&kind=loop&outcome=failed")).items as [
      Loop,
      Loop,
    ];
    await using opened = await openPage(on.browser, `${on.base}/loops/${session}.${runner}.${loop}`);
    const { page, errors } = opened;
    const differences = page.getByLabel("What differs from the last good loop");
    const { differences: all } = await api(`compare?left=${session}.${runner}.${loop}`);
    // The failure itself is shown above: the causes do not repeat it.
    const expected = (all as Difference[]).filter(({ kind }) => kind !== "failure");
    expect(expected.length).toBeLessThan(all.length);
    // Settings that only one side has are one line.
    const shown = differences.locator("li, .one-sided");
    for (const { subject } of expected.slice(0, 5)) await shown.filter({ hasText: subject }).first().waitFor();
    if (expected.length === 0) await differences.getByText("Nothing else that differs is recorded.").waitFor();
    await differences.getByRole("link", { name: "Compare them" }).click();
    await page.getByLabel("Left side").getByRole("heading", { name: "bob/shop loop 2" }).waitFor();
    await page.getByLabel("Right side").getByRole("heading", { name: "bob/shop loop 1" }).waitFor();
    const [
      {
        subject,
        evidence: [evidence],
      } = expect.fail("nothing differs"),
    ] = all as Difference[];
    await page.getByRole("link", { name: `Evidence in loop 2: ${subject}` }).click();
    await page.locator(`aside[data-position="${evidence?.position}"]`).waitFor();
    expect(errors).toEqual([]);
  });

  it("two developers are chosen, compared and swapped, and a copied URL shows the same", async () => {
    await using opened = await openPage(on.browser, `${on.base}/`);
    const { page, errors } = opened;
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByLabel("Source on the left").selectOption("bob/shop");
    await page.getByLabel("Left side").getByRole("heading", { name: "bob/shop loop 4" }).waitFor();
    await page.getByLabel("Source on the right").selectOption("olga/shop");
    await page
      .getByLabel("Right side")
      .getByRole("heading", { name: /^. olga\/shop loop|olga\/shop loop/ })
      .waitFor();
    const { differences, equal, same } = await api("compare?left=bob/shop&right=olga/shop");
    type Shown = { readonly kind: string; readonly left: string | null; readonly right: string | null };
    const expected = differences.map(({ kind, left, right }: Shown) => {
      const none = kind === "failure" ? "did not fail" : "absent";
      return [left ?? none, right ?? none];
    });
    const shown = async () => {
      const columns = await Promise.all(
        ["left", "right"].map((side) => page.locator(`.difference-list .${side} .is`).allTextContents()),
      );
      return columns[0]?.map((left, at) => [left, columns[1]?.[at]]);
    };
    await expect.poll(shown).toEqual(expected);
    expect(equal).toBeGreaterThan(0);
    expect(await page.locator(".same li").first().isVisible()).toBe(false);
    await page.getByText(`${equal} equal`, { exact: true }).click();
    await expect.poll(() => page.locator(".same li:visible").count()).toBe(same.length);
    await using other = await openPage(on.browser, page.url());
    await expect.poll(() => other.page.locator(".difference-list li").count()).toBe(differences.length);
    await page.getByRole("button", { name: "Swap sides" }).click();
    await page.getByLabel("Right side").getByRole("heading", { name: "bob/shop loop 4" }).waitFor();
    expect(new URL(page.url()).search).toBe("?left=olga/shop&right=bob/shop");
    await page
      .getByLabel("Right side")
      .getByRole("button", { name: /^loop 1: good/ })
      .click();
    await page.getByLabel("Right side").getByRole("heading", { name: "bob/shop loop 1" }).waitFor();
    expect([...errors, ...other.errors]).toEqual([]);
  });

  it("a side that is pinned stays while the other is chosen, and follows again afterwards", async () => {
    await using opened = await openPage(on.browser, `${on.base}/compare?left=bob/shop`);
    const { page, errors } = opened;
    const [left, right] = [page.getByLabel("Left side"), page.getByLabel("Right side")];
    await left.getByRole("heading", { name: "bob/shop loop 4" }).waitFor();
    await right.getByRole("heading", { name: "bob/shop loop 3" }).waitFor();
    await right.getByRole("button", { name: "Pin the right side" }).click();
    await right.getByRole("button", { name: "Unpin the right side" }).waitFor();
    expect(new URL(page.url()).search).toMatch(/\?left=bob\/shop&right=\w+\.1\.3$/);
    await left.getByRole("button", { name: /^loop 2: failed/ }).click();
    await left.getByRole("heading", { name: "bob/shop loop 2" }).waitFor();
    await right.getByRole("heading", { name: "bob/shop loop 3" }).waitFor();
    await left.getByRole("button", { name: "Unpin the left side" }).waitFor();
    await right.getByRole("button", { name: "Unpin the right side" }).click();
    // The last good one before the second.
    await right.getByRole("heading", { name: "bob/shop loop 1" }).waitFor();
    expect(errors).toEqual([]);
  });
});
