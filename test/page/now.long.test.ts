import { type Scenario, scenario, startedAt } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { browserProgram, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";
import { contrast } from "./contrast.ts";
import { darkPhone, designs, lightDesktop } from "./page-designs.ts";

type Upstream = "skaffold" | "vagrant";

/** A source with a session that runs; its times are counted from now. */
function sourceOf(developer: string, project = "shop", upstream: Upstream = "skaffold") {
  const own = scenario(sourceName({ workspace: "acme", developer, project, upstream }));
  const session = own.session(`0${developer.toUpperCase()}`);
  const began = Date.now() - startedAt - 600_000;
  own.add({ kind: "upstream.connected" }, began);
  session.started({ branch: "main", commit: "4f2c1e0a9b" }, began + 1);
  session.configured(began + 2);
  return { ...own, session, began };
}

type TestSource = ReturnType<typeof sourceOf>;

function goodLoop({ session }: TestSource, at: number): void {
  session.loopStarted(at);
  session.build("web", "started", at + 10);
  session.build("web", "succeeded", at + 1_900);
  session.phase("deploy", "started", at + 2_000);
  session.phase("check", "started", at + 2_400);
  session.phase("check", "succeeded", at + 3_900);
  session.phase("deploy", "succeeded", at + 4_000);
  session.loopEnded("succeeded", at + 4_100);
}

const error = {
  code: "BUILD_USER_ERROR",
  message: "main.go:7: undefined: handler",
  suggestions: ["Run go vet ./... in web"],
};

/** Two builds fail, and the first of them is the cause. */
function failedLoop({ session }: TestSource, at: number): void {
  session.loopStarted(at);
  session.build("web", "started", at + 10);
  session.build("api", "started", at + 20);
  session.build("web", "failed", at + 900, { error });
  session.build("api", "failed", at + 950);
  session.loopEnded("failed", at + 1_000);
}

function command(to: Pick<Scenario, "add">, session: string, verb: "started" | "finished", at: number, fields: object) {
  const operation = { kind: "command", subject: "up", instance: `${session}-1` };
  to.add({ kind: `command.${verb}`, session, channel: "jobs", operation, ...fields }, at);
}

describe.skipIf(browserProgram === undefined)("Now", () => {
  const cleanup = new AsyncDisposableStack();
  let seeded: SeededStack;
  let browser: Browser;
  let base = "";

  beforeAll(async () => {
    seeded = cleanup.use(await startSeededStack());
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    base = `http://${seeded.stack.http}`;
  });
  afterAll(() => cleanup.disposeAsync());

  const flush = async ({ events }: TestSource) => {
    await seeded.seed(events.splice(0));
  };
  const row = (page: Page, name: string) => page.locator(".row", { hasText: name });
  const group = (page: Page, title: string) => page.getByRole("region", { name: title, exact: true });

  /** Every design of what Now shows: no serious fault, nothing wider than the screen. */
  async function observed(name: string, text: string): Promise<void> {
    for (const [colorScheme, width] of designs(lightDesktop, darkPhone)) {
      const viewport = { width, height: width === 390 ? 844 : 900 };
      await using opened = await openPage(browser, `${base}/`, { colorScheme, viewport, reducedMotion: "reduce" });
      const { page, errors } = opened;
      await page.getByText(text).first().waitFor();
      expect([name, await faultsOf(page)]).toEqual([name, []]);
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      expect([name, colorScheme, width, overflow, errors]).toEqual([name, colorScheme, width, 0, []]);
      await screenshot(page, `${name}-${colorScheme}-${width}`);
    }
  }

  let alice: TestSource;
  let bob: TestSource;

  it("teaches while nothing is recorded, and the first event takes its place", async () => {
    await observed("now-empty", "Nothing is recorded yet");
    await using opened = await openPage(browser, `${base}/`);
    const { page } = opened;
    await page.getByText("Nothing is recorded yet").waitFor();
    alice = sourceOf("alice");
    goodLoop(alice, alice.began + 1_000);
    const port = { local_port: 8080, resource_name: "web" };
    alice.add({ kind: "port.forwarded", session: "0ALICE", channel: "v1", detail: { $case: "port", value: port } });
    await flush(alice);
    await row(page, "alice/shop").getByText("ready in 4.1 s").waitFor();
    expect(await page.getByText("Nothing is recorded yet").count()).toBe(0);
  });

  it("shows state beside a row, and keeps the ports of a session when it is loaded again", async () => {
    await using opened = await openPage(browser, `${base}/`);
    const { page, errors } = opened;
    await row(page, "alice/shop").getByRole("link", { name: "localhost:8080" }).waitFor();
    await row(page, "alice/shop").getByText("ready in").click();
    const panel = page.getByLabel("State of alice/shop");
    await panel.getByText(/^web/).first().waitFor();
    await panel.getByRole("link", { name: "Open the session" }).waitFor();
    expect([await faultsOf(page), errors]).toEqual([[], []]);
    await screenshot(page, "now-beside");
  });

  it("moves a row to another group once, gliding, and without motion for who wants none", async () => {
    bob = sourceOf("bob");
    goodLoop(bob, bob.began + 1_000);
    await flush(bob);
    // Gliding rows are noted here.
    const watch = `(() => {
      globalThis.glided = [];
      const animate = Element.prototype.animate;
      Element.prototype.animate = function (...given) {
        globalThis.glided.push(this.dataset.source);
        return animate.apply(this, given);
      };
    })()`;
    await using moving = await openPage(browser, "about:blank");
    await using still = await openPage(browser, "about:blank", { reducedMotion: "reduce" });
    for (const { page } of [moving, still]) {
      await page.addInitScript(watch);
      await page.goto(`${base}/`);
      await group(page, "Idle").getByText("bob/shop").waitFor();
    }
    failedLoop(bob, Date.now() - startedAt - 30_000);
    await flush(bob);
    for (const { page } of [moving, still]) await group(page, "Failing").getByText("bob/shop").waitFor();
    const glided = ({ page }: typeof moving) => page.evaluate("[...glided].sort()");
    expect(await glided(moving)).toEqual(["acme/alice/shop/skaffold", "acme/bob/shop/skaffold"]);
    expect(await glided(still)).toEqual([]);
    expect([moving.errors, still.errors]).toEqual([[], []]);
  });

  it("leads with one click to the suggestion, and to what failed after the cause", async () => {
    await using opened = await openPage(browser, `${base}/`);
    const { page } = opened;
    await row(page, "bob/shop").getByText("main.go:7: undefined: handler").waitFor();
    await row(page, "bob/shop").getByText("Why?").click();
    const failure = page.getByLabel("What failed first");
    await failure.getByText("Run go vet ./... in web").waitFor();
    await failure.getByText("Then failed, too: build api").waitFor();
    // The last good loop waited for the check, and for the deploy only around it.
    await page.keyboard.press("[");
    await page
      .getByRole("heading", { name: "alice/shop · loop 1" })
      .or(page.getByRole("heading", { name: "bob/shop · loop 1" }))
      .waitFor();
    const waited = (step: string) => page.locator(".waterfall tr", { hasText: step }).locator("td").last();
    await expect.poll(() => waited("check").textContent()).toBe("1.5 s");
    expect(await waited("deploy").textContent()).toBe("500 ms");
    await page.keyboard.press("]");
    await failure.waitFor();
  });

  it("is used from the keyboard", async () => {
    await using opened = await openPage(browser, `${base}/`);
    const { page, errors } = opened;
    await row(page, "alice/shop").waitFor();
    const focused = () => page.evaluate("document.activeElement.textContent");
    await page.keyboard.press("j");
    expect(await focused()).toBe("bob/shop");
    await page.keyboard.press("j");
    expect(await focused()).toBe("alice/shop");
    await page.keyboard.press("k");
    expect(await focused()).toBe("bob/shop");
    await page.keyboard.press("Enter");
    await page.getByLabel("State of bob/shop").waitFor();
    const dialog = page.getByRole("dialog", { name: "Keys" });
    await page.keyboard.press("?");
    await dialog.getByText("next and previous row").waitFor();
    // What is open on top closes first, and takes the keys.
    await page.keyboard.press("/");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await page.getByLabel("State of bob/shop").waitFor();
    await page.keyboard.press("Escape");
    await page.getByLabel("State of bob/shop").waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await dialog.waitFor();
    await page.keyboard.press("?");
    await dialog.waitFor({ state: "hidden" });
    await page.keyboard.press("/");
    await page.keyboard.type("undefined: handler");
    await row(page, "alice/shop").waitFor({ state: "detached" });
    await row(page, "bob/shop").waitFor();

    await page.goto(`${base}/sessions/0BOB`);
    const slider = page.getByLabel("Moment of the session");
    const history = await fetch(`${base}/api/v1/events?session=0BOB&last=1000`);
    const { items } = (await history.json()) as { items: unknown[] };
    const last = String(items.length - 1);
    await expect.poll(() => slider.inputValue(), { message: "all events to be read" }).toBe(last);
    await page.keyboard.press("[");
    await expect.poll(async () => Number(await slider.inputValue())).toBeLessThan(Number(last));
    await page.keyboard.press("Space");
    await page.getByLabel("Pause").waitFor();
    await page.keyboard.press("Space");
    await page.getByLabel("Play").waitFor();
    await page.keyboard.press("]");
    await expect.poll(() => slider.inputValue()).toBe(last);
    expect(errors).toEqual([]);
  });

  it("shows builds outside of loops and commands that ended with their failure, and where each is explained", async () => {
    const chris = sourceOf("chris", "blog");
    const at = chris.began + 300_000;
    chris.session.build("rss", "started", at);
    chris.session.build("rss", "failed", at + 2_000);
    chris.session.ended("process ended", at + 2_100);
    await flush(chris);
    const dana = sourceOf("dana", "vm", "vagrant");
    const good = { outcome: 1, detail: { $case: "command", value: { command: "up", job: "0DANA-1" } } };
    command(dana, "0DANA", "started", dana.began + 1_000, {});
    command(dana, "0DANA", "finished", dana.began + 30_000, good);
    command(dana, "0DANA", "started", dana.began + 60_000, {});
    const bad = { ...good, outcome: 2, error: { code: "", message: "The box 'debian/trixie' could not be found" } };
    command(dana, "0DANA", "finished", dana.began + 70_000, bad);
    dana.session.ended("process ended", dana.began + 71_000);
    await flush(dana);
    await using opened = await openPage(browser, `${base}/`);
    const { page, errors } = opened;
    const failing = group(page, "Failing");
    await failing.getByText("The box 'debian/trixie' could not be found").waitFor();
    await failing.getByText("rss does not build").waitFor();
    await page.locator(".counts").getByText("3 failing").waitFor();
    await row(page, "chris/blog").getByText("Why?").click();
    await page.getByRole("heading", { name: "chris/blog" }).waitFor();
    await page.locator(".event-list .current", { hasText: "build.failed" }).waitFor();
    await page.goBack();
    await row(page, "dana/vm").getByText("Why?").click();
    await page.getByRole("heading", { name: "Compare" }).waitFor();
    expect(page.url()).toContain("/compare?left=0DANA%40");
    await page.getByLabel("What differs", { exact: true }).getByText("could not be found").first().waitFor();
    await screenshot(page, "compare-command");
    expect(errors).toEqual([]);
  });

  it("says since when a source is lost", async () => {
    const erin = sourceOf("erin", "api");
    goodLoop(erin, erin.began + 1_000);
    const lostAt = erin.began + 120_000;
    const silent = { $case: "upstream" as const, value: { unheard: true, reason: "its tap is gone" } };
    erin.add({ kind: "upstream.lost", session: "0ERIN", detail: silent }, lostAt);
    await flush(erin);
    await using opened = await openPage(browser, `${base}/`);
    const { page } = opened;
    const clock = new Date(startedAt + lostAt).toLocaleTimeString("en-GB").slice(0, 5);
    await group(page, "Lost").getByText(`last seen ${clock}`).waitFor();
  });

  it("is readable in every design while it is busy: its pieces, too", async () => {
    const frank = sourceOf("frank", "checkout-with-a-long-name");
    for (const index of [1, 2, 3, 4]) goodLoop(frank, frank.began + index * 60_000);
    const at = Date.now() - startedAt - 3_000;
    frank.session.loopStarted(at);
    frank.session.build("web", "started", at + 10);
    frank.session.build("web", "succeeded", at + 1_200);
    frank.session.build("recommendations-service", "started", at + 1_300);
    await flush(frank);
    const grace = sourceOf("grace", "pay");
    grace.session.loopStarted(grace.began + 1_000);
    grace.session.build("web", "started", grace.began + 1_100);
    grace.session.build("web", "canceled", grace.began + 9_000);
    await flush(grace);
    await observed("now-busy", "frank/checkout-with-a-long-name");
    for (const colorScheme of ["light", "dark"] as const) {
      await using opened = await openPage(browser, `${base}/`, { colorScheme });
      await row(opened.page, "grace/pay").waitFor();
      const pieces = (await opened.page.evaluate(`[...document.querySelectorAll(".piece")].map((piece) => {
        const { color, backgroundColor, backgroundImage } = getComputedStyle(piece);
        const backs = backgroundImage === "none" ? [backgroundColor] : backgroundImage.match(/rgb\\([^)]*\\)/g);
        const opacity = [...Array(9)].reduce(([node, all]) => [node?.parentElement, all * (node ? getComputedStyle(node).opacity : 1)], [piece, 1])[1];
        return { kind: piece.className, color, backs, opacity };
      })`)) as { kind: string; color: string; backs: string[]; opacity: number }[];
      const kinds = new Set(pieces.map(({ kind }) => kind));
      expect([...kinds].sort()).toEqual(["piece canceled", "piece failed", "piece running", "piece succeeded"]);
      for (const { kind, color, backs, opacity } of pieces) {
        for (const back of backs)
          expect([colorScheme, kind, color, back, contrast(color, back) >= 4.5]).toContain(true);
        expect([kind, opacity]).toEqual([kind, 1]);
      }
    }
  });
});
