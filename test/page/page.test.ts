import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { browserProgram, launchBrowser, openPage } from "./browser.ts";

// The rest of what a browser sees is in page.long.test.ts.

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

describe.skipIf(browserProgram === undefined)("the page", () => {
  const cleanup = new AsyncDisposableStack();
  let [stack, fake, browser]: [Stack?, FakeSkaffold?, Browser?] = [];

  beforeAll(async () => {
    const recording = loadRecording(join(recordings, "04-deploy-failure-then-recovery"));
    fake = cleanup.use(await startFakeSkaffold({ recording }));
    stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address }] }));
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await stack.connected();
  });
  afterAll(() => cleanup.disposeAsync());

  it("shows a loop as it happens, without a script that throws or breaks the content security policy", async () => {
    await using opened = await openPage(browser ?? expect.fail(), `http://${stack?.http}/`);
    const { page, problems } = opened;
    await page.getByText("alice/shop").waitFor();
    void fake?.play();
    await page.getByTitle(/^loop 1: good/).waitFor();
    expect(problems).toEqual([]);
  });
});

it("loads at most 120 KB of compressed script first, and Trends with its charts when it is opened", () => {
  const dist = join(import.meta.dirname, "../../packages/web/dist");
  const sizeOf = (names: readonly string[]) =>
    names.reduce((sum, name) => sum + gzipSync(readFileSync(join(dist, "assets", name))).length, 0);
  const all = readdirSync(join(dist, "assets")).filter((name) => name.endsWith(".js"));
  const index = readFileSync(join(dist, "index.html"), "utf8");
  const first = all.filter((name) => index.includes(`/assets/${name}`));
  expect(first.length).toBeGreaterThan(0);
  expect(sizeOf(first)).toBeLessThan(120 * 1_024);
  expect(first.filter((name) => name.startsWith("trends"))).toEqual([]);
  expect(all.filter((name) => name.startsWith("trends"))).toHaveLength(1);
});
