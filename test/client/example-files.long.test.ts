import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { npmPackages } from "@tapedeck/infra/names";
import { until } from "@tapedeck/shared/testing/until";
import type { Browser } from "playwright-core";
import { collect, type RunningCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserProgram, launchBrowser, openPage } from "../page/browser.ts";
import { type Stack, startStack } from "../stack/stack.ts";

// Runs each file of packages/client/examples unchanged, with the package as it would be published, against a whole Tapedeck.

const root = fileURLToPath(new URL("../..", import.meta.url));
const recording = loadRecording(join(root, "packages/fakes/recordings/skaffold/04-deploy-failure-then-recovery"));
/** How many messages of the recording there are when a loop has ended, or begun. */
const after = { good: 11, failed: 17, repaired: 23, broken: 25 };

const developers = ["bar", "bot", "crash", "past", "follow", "wait", "curl", "pages", "hook"] as const;
type Developer = (typeof developers)[number];

const cleanup = new AsyncDisposableStack();
const fakes = new Map<Developer, FakeSkaffold>();
let folder: string;
let stack: Stack;
/** The address of a web server that has the examples, the package and preact. */
let origin: string;
const posted: { readonly path: string | undefined; readonly body: unknown }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapedeck-example-files-"));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const installed = join(folder, "node_modules", npmPackages.client);
  origin = await serve(installed);
  for (const developer of developers) fakes.set(developer, cleanup.use(await startFakeSkaffold({ recording })));
  const [started] = await Promise.all([
    startStack({
      skaffold: [...fakes].map(([developer, { address }]) => ({ developer, address })),
      env: { TAPEDECK_GATEWAY_ORIGINS: origin },
    }),
    promisify(execFile)(process.execPath, [join(root, "packages/client/build.ts"), installed]),
    cp(join(root, "packages/client/examples"), folder, { recursive: true }),
    writeFile(join(folder, "package.json"), '{"type":"module"}'),
  ]);
  stack = cleanup.use(started);
});
afterAll(() => cleanup.disposeAsync());

const types: Readonly<Record<string, string>> = { ".html": "text/html", ".js": "text/javascript" };

async function serve(installed: string): Promise<string> {
  const files = async (path: string) => {
    if (path === "/hook.html") return hookPage;
    if (path === "/react-hook.js") return stripTypeScriptTypes(await readFile(join(folder, "react-hook.ts"), "utf8"));
    if (path.startsWith("/client/")) return readFile(join(installed, path.slice("/client/".length)));
    if (path.startsWith("/preact/")) return readFile(join(root, "node_modules", path));
    return readFile(join(folder, path));
  };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://here");
    if (request.method === "POST") {
      posted.push({ path: pathname, body: JSON.parse((await Array.fromAsync(request)).join("")) });
      response.end();
      return;
    }
    await files(pathname).then(
      (file) => response.setHeader("content-type", types[extname(pathname)] ?? "text/plain").end(file),
      () => response.writeHead(404).end(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A component that uses the hook. */
const hookPage = `<!doctype html>
<main></main>
<script type="importmap">
  { "imports": {
    "@tapedeck-dev/client": "./client/index.js", "react": "./preact/compat/dist/compat.module.js",
    "preact": "./preact/dist/preact.module.js", "preact/hooks": "./preact/hooks/dist/hooks.module.js"
  } }
</script>
<script type="module">
  import { createElement, render } from "react";
  import { useEvents } from "./react-hook.js";

  const url = new URLSearchParams(location.search).get("tapedeck");
  function Failures() {
    const { events, error } = useEvents({ url, kinds: ["deploy.failed"] });
    return createElement("p", {}, error ?? events.map(({ source, summary }) => source + ": " + summary).join("; "));
  }
  render(createElement(Failures), document.querySelector("main"));
</script>`;

async function play(developer: Developer, upTo: keyof typeof after): Promise<void> {
  await fakes.get(developer)?.playUntil({ v1: after[upTo] });
}

function start(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCli {
  return collect(
    spawn(program, args, {
      cwd: folder,
      env: { ...process.env, TAPEDECK_URL: `http://${stack.http}`, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    }),
  );
}
const node = (file: string, args: readonly string[] = [], env = {}) => start(process.execPath, [file, ...args], env);

const linesOf = (running: RunningCli) => running.stdout().split("\n").slice(0, -1);

const saw = (running: RunningCli, line: RegExp) =>
  until(() => linesOf(running).some((one) => line.test(one)), { message: `${line}, not ${running.stdout()}` });

type Item = Readonly<Record<string, unknown>>;

async function list(path: string): Promise<readonly Item[]> {
  return JSON.parse((await stack.httpCall("GET", `/api/v1/${path}`)).body).items;
}

/** How many readers follow the log's end. */
async function followers(): Promise<number> {
  const { body } = await stack.httpCall("GET", "/metrics");
  return Number(/^tapedeck_gateway_subscriptions\S* (\d+)/m.exec(body)?.[1]);
}

/** Starts a program when no other one is left, and resolves when it follows the log. */
async function startFollowing(begin: () => RunningCli): Promise<RunningCli> {
  await until(async () => (await followers()) === 0, { message: "the readers before to be gone" });
  const running = begin();
  await until(async () => (await followers()) === 1, { message: `a reader, not ${running.stderr()}` });
  return running;
}

const ended = (developer: Developer, count: number) =>
  until(
    async () =>
      (await list(`operations?developer=${developer}&kind=loop&outcome=succeeded&outcome=failed`)).length === count,
    { message: `${count} loops of ${developer}` },
  );

it("status-bar.ts prints what fails, and that it is good again", async () => {
  await play("bar", "good");
  await ended("bar", 1);
  await using bar = node("status-bar.ts");
  await saw(bar, /^✓ all good$/);
  await play("bar", "failed");
  await saw(bar, /^✕ 1 failing: bar\/shop$/);
  await play("bar", "repaired");
  await until(() => linesOf(bar).at(-1) === "✓ all good", { message: "the repair" });
});

it("failure-bot.ts posts why a loop failed", async () => {
  await play("bot", "good");
  await ended("bot", 1);
  await using _ = await startFollowing(() => node("failure-bot.ts", [], { CHAT_URL: `${origin}/hooks/builds` }));
  await play("bot", "failed");
  await until(() => posted.length > 0, { message: "the failure to be posted" });
  expect(posted[0]).toEqual({
    path: "/hooks/builds",
    body: { text: expect.stringMatching(/^shop of bot: the cluster refuses the manifest: error: .*Deploymint/) },
  });
});

it("resume.ts handles each failed step once, although it is killed", async () => {
  const file = join(folder, "crash.txt");
  const kept = () => readFile(file, "utf8").catch(() => "");
  const handled: string[] = [];
  for (const [upTo, loops] of [
    ["failed", 2],
    ["broken", 4],
  ] as const) {
    await play("crash", upTo);
    await ended("crash", loops);
    await using running = node("resume.ts", [], { POSITION_FILE: file });
    const [last] = await list("events?kind=*.failed&developer=crash&last=1");
    await until(async () => (await kept()) >= String(last?.position), { message: "the last position to be kept" });
    running.child.kill("SIGKILL");
    await running.ended;
    handled.push(...linesOf(running).flatMap((line) => (line.includes("/crash/") ? (line.split(" ")[1] ?? "") : [])));
  }
  const failed = await list("events?kind=*.failed&developer=crash&limit=1000");
  expect(failed.length).toBeGreaterThan(2);
  expect(handled).toEqual(failed.map(({ id }) => id));
});

it("state-at-time.ts prints what was built then, beside now", async () => {
  await play("past", "good");
  await ended("past", 1);
  const [first] = await list("events?developer=past&kind=build.started&limit=1");
  await using past = node("state-at-time.ts", ["past/shop", String(first?.recordedAt)]);
  expect([await past.ended, past.stderr()]).toEqual([0, ""]);
  expect(linesOf(past)).toContainEqual(expect.stringMatching(/^web: .* then, Complete now$/));
  await using early = node("state-at-time.ts", ["past/shop", "2001-01-01T00:00:00Z"]);
  expect([await early.ended, early.stderr()]).toEqual([1, expect.stringMatching(/\S/)]);
});

it("follow-loop.ts prints the steps of the running loop, and ends with it", async () => {
  await fakes.get("follow")?.playUntil({ v1: after.good + 2 });
  await until(async () => (await list("operations?developer=follow&kind=loop")).length === 2, {
    message: "the second loop to begin",
  });
  await using following = await startFollowing(() => node("follow-loop.ts", ["follow/shop"]));
  await play("follow", "repaired");
  expect([await following.ended, following.stderr()]).toEqual([0, ""]);
  const steps = linesOf(following).map((line) => line.replace(/ after .*/, ""));
  expect(steps.toSorted()).toEqual(["build web succeeded", "deploy failed", "loop failed", "render succeeded"]);
  expect(steps.at(-1)).toBe("loop failed");
});

it("wait-for-loop.ts builds, and ends as the loop does", async () => {
  await play("wait", "good");
  await ended("wait", 1);
  const fake = fakes.get("wait");
  for (const [upTo, code] of [
    ["failed", 1],
    ["repaired", 0],
  ] as const) {
    const calls = fake?.calls.length ?? 0;
    await using waiting = node("wait-for-loop.ts", ["wait/shop"]);
    await until(() => (fake?.calls.length ?? 0) > calls, { message: "the call to reach Skaffold" });
    await play("wait", upTo);
    expect([await waiting.ended, waiting.stderr()]).toEqual([code, ""]);
    expect(linesOf(waiting)).toHaveLength(3);
  }
});

it("curl.sh prints failures and builds, and then what fails", async () => {
  await play("curl", "failed");
  await ended("curl", 2);
  await using curl = await startFollowing(() => start("sh", ["curl.sh"]));
  await play("curl", "broken");
  await saw(curl, /^loop 4 failed/);
  // The group holds what the script has started, too.
  if (curl.child.pid !== undefined) process.kill(-curl.child.pid, "SIGKILL");
  const lines = linesOf(curl);
  expect([lines.filter((line) => line.startsWith("== ")).length, curl.stderr()]).toEqual([4, ""]);
  expect(lines).toContainEqual(expect.stringMatching(/Z default\/curl\/shop\/skaffold deploy failed/));
});

describe.skipIf(browserProgram === undefined)("in a browser, from another origin", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
  });
  const open = (file: string) => openPage(browser, `${origin}/${file}?tapedeck=http://${stack.http}`);

  it("wallboard.html has a tile for each source, red after a failed loop", async () => {
    await play("pages", "good");
    await ended("pages", 1);
    await using opened = await open("wallboard.html");
    const tile = opened.page.locator("section", { hasText: "pages/shop" });
    await tile.waitFor();
    expect(await tile.getAttribute("class")).toBe("");
    await play("pages", "failed");
    await opened.page.locator("section.failed", { hasText: "pages/shop" }).waitFor();
    await play("pages", "repaired");
    await opened.page.locator("section:not(.failed)", { hasText: "pages/shop" }).waitFor();
    expect(opened.errors).toEqual([]);
  });

  it("other-origin.html lists events, and says why it may not", async () => {
    await using opened = await open("other-origin.html");
    await opened.page.getByText("pages/shop", { exact: false }).first().waitFor();
    expect(await opened.page.locator("#connection").textContent()).toBe("connected");
    expect(opened.errors).toEqual([]);
    const foreign = origin.replace("127.0.0.1", "localhost");
    await using refused = await openPage(browser, `${foreign}/other-origin.html?tapedeck=http://${stack.http}`);
    await refused.page.getByText("forbidden", { exact: false }).waitFor();
  });

  it("react-hook.ts renders the newest events, and those that happen", async () => {
    await play("hook", "good");
    await using opened = await open("hook.html");
    await play("hook", "failed");
    await opened.page.locator("p", { hasText: "default/hook/shop/skaffold: deploy failed" }).waitFor();
    expect(opened.errors).toEqual([]);
  });
});
