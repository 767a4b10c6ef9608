import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ProviderStack, startProviderStack } from "../security/provider-stack.ts";
import { browserProgram, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";

describe.skipIf(browserProgram === undefined)("signing in on the page by a provider", () => {
  const cleanup = new AsyncDisposableStack();
  afterAll(() => cleanup.disposeAsync());
  let stack: ProviderStack;
  let browser: Browser;
  beforeAll(async () => {
    stack = cleanup.use(await startProviderStack());
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
  });

  const logIn = async (page: import("playwright-core").Page, login: string) => {
    await page.getByRole("link", { name: "Sign in with Acme" }).click();
    await page.locator("input[name=login]").fill(login);
    await page.locator("input[name=password]").fill("any");
    await page.locator("button[type=submit]").click();
    await page.getByRole("button", { name: "Continue" }).click();
  };

  it("comes back to where the person was, reads, and ends with signing out", async () => {
    await using opened = await openPage(browser, `${stack.origin}/health`);
    const { page, context, errors } = opened;
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await screenshot(page, "sign-in-by-provider");
    await logIn(page, "alice");
    await page.locator(".visitor", { hasText: /^alice \(127/ }).waitFor();
    expect(page.url()).toBe(`${stack.origin}/health`);
    const held = await context.cookies(stack.origin);
    expect(held.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite])).toContainEqual([
      "tapedeck-sign-in",
      true,
      "Strict",
    ]);
    await page.reload();
    await page.locator(".visitor", { hasText: /^alice \(127/ }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect((await context.cookies(stack.origin)).map(({ name }) => name)).not.toContain("tapedeck-sign-in");
    expect(errors).toEqual([]);
  });

  it("shows a person without a role what is missing", async () => {
    await using opened = await openPage(browser, `${stack.origin}/`);
    const { page } = opened;
    await logIn(page, "stranger");
    await page.getByText('there is no claim "groups"').waitFor();
    await page.getByRole("link", { name: "Back to Tapedeck" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });
});
