import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { npmPackages } from "@tapedeck/infra/names";
import { startedAt } from "@tapedeck/query/testing/scenario";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { collect, type RunningCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LiveHarness, startLiveHarness } from "./live-harness.ts";

// Runs the examples of the client's README unchanged, with the package as it would be published.

const packageFolder = fileURLToPath(new URL("../../packages/client", import.meta.url));
const run = promisify(execFile);

const cleanup = new AsyncDisposableStack();
let harness: LiveHarness;
let folder: string;
let readme: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapedeck-examples-"));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const [live] = await Promise.all([
    startLiveHarness(),
    run(process.execPath, [join(packageFolder, "build.ts"), join(folder, "node_modules", npmPackages.client)]),
    writeFile(join(folder, "package.json"), '{"type":"module"}'),
  ]);
  harness = cleanup.use(live);
  readme = await readFile(join(folder, "node_modules", npmPackages.client, "README.md"), "utf8");
});
afterAll(() => cleanup.disposeAsync());

/** The example that follows this text. */
function codeOf(words: string): string {
  const code = readme.slice(readme.indexOf(words)).match(/```ts\n(.*?)```/s)?.[1];
  if (code === undefined || !readme.includes(words)) throw new Error(`README.md has no example "${words}"`);
  return code;
}

/** Runs an example, with this test's addresses in place of its own. */
async function start(words: string, addresses: Readonly<Record<string, string>> = {}): Promise<RunningCli> {
  let code = codeOf(words);
  for (const [named, real] of Object.entries({ "http://127.0.0.1:7052": harness.url, ...addresses })) {
    if (!code.includes(named)) throw new Error(`the example "${words}" does not name ${named}`);
    code = code.replaceAll(named, real);
  }
  const file = join(folder, `${words.replaceAll(/\W+/g, "-")}.ts`);
  await writeFile(file, code);
  return collect(spawn(process.execPath, [file], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] }));
}

const linesOf = (running: RunningCli) => running.stdout().split("\n").slice(0, -1);

it("the examples compile against the published types", async () => {
  const examples = [...readme.matchAll(/```ts\n(import .*?)```/gs)];
  expect(examples).toHaveLength(6); // five, and the one at the top of the page
  const files = examples.map((_, index) => `type-check-${index}.ts`);
  for (const [index, example] of examples.entries()) {
    await writeFile(join(folder, files[index] ?? ""), `${example[1]}\nexport {};\n`);
  }
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const compilerOptions = { noEmit: true, types: ["node"], typeRoots: [join(root, "node_modules", "@types")] };
  // The root's own `include` is the whole project.
  const config = { extends: join(root, "tsconfig.json"), compilerOptions, include: [], files };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = fileURLToPath(new URL("bin/tsc", import.meta.resolve("typescript/package.json")));
  const { stdout } = await run(process.execPath, [tsc, "-p", folder]).catch((error: { stdout: string }) => error);
  expect(stdout).toBe("");
});

it("the first example prints failing builds as they fail", async () => {
  const writer = harness.writer("alice");
  await writer.builds(4);
  await using example = await start("Print builds that fail");
  await until(
    async () => {
      writer.session.build("api", "succeeded");
      writer.session.build("web", "failed");
      await writer.written();
      return linesOf(example).length > 2;
    },
    { message: "some to be printed" },
  );
  expect(new Set(linesOf(example))).toEqual(new Set(["acme/alice/shop/skaffold: web: web does not build"]));
});

it("the deploy example handles every deploy once, also after a restart", async () => {
  const writer = harness.writer("bob");
  const seqOf = (position: string) => seqIn(position);
  const kept = async () => seqOf(await readFile(join(folder, "position.txt"), "utf8").catch(() => ""));
  const times: string[] = [];
  for (const count of [3, 2, 4]) {
    for (let index = 0; index < count; index++) writer.session.phase("deploy", "succeeded");
    const last = (await writer.written()).at(-1)?.position ?? "";
    await using example = await start("Handle every deploy once");
    await until(() => linesOf(example).length >= count, { message: `${count} deploys` });
    await until(async () => (await kept()) >= seqOf(last), { message: "the last position to be kept" });
    times.push(...linesOf(example).map((line) => line.split(" ")[0] ?? ""));
  }
  expect([times.length, new Set(times).size]).toEqual([9, 9]);
});

it("the state example prints a source's state and what changes in it", async () => {
  const writer = harness.writer("carl");
  await writer.builds(2);
  await harness.seeded.stack.caughtUp();
  const code = "Show what one source looks like";
  await using example = await start(code, { "alice/shop": "carl/shop" });
  await until(() => linesOf(example).length === 1, { message: "the state" });
  expect(linesOf(example)[0]).toMatch(/^as of \w+-\w+: \{"v1":\{.*"web":"Complete"/);
  await writer.builds(2, "api");
  await until(() => linesOf(example).length === 3, { message: "what changed" });
  expect(linesOf(example).slice(1)).toEqual(["build.started api", "build.succeeded api"]);
});

it("the list example prints the slow builds and a session's events", async () => {
  const writer = harness.writer("dora");
  const at = Date.now() - startedAt;
  writer.session.build("slow", "started", at);
  writer.session.build("quick", "started", at);
  writer.session.build("quick", "succeeded", at + 9_000);
  writer.session.build("slow", "succeeded", at + 12_500);
  await writer.written();
  await harness.seeded.stack.caughtUp();
  await using example = await start("List the slow builds", { "alice/shop": "dora/shop" });
  expect([await example.ended, example.stderr()]).toEqual([0, ""]);
  const lines = linesOf(example);
  expect(lines.filter((line) => line.includes("dora") && line.includes("took"))).toEqual([
    "acme/dora/shop/skaffold: slow took 12.5 s",
  ]);
  const printed = lines.slice(lines.indexOf("session 01DORA on branch main") + 1);
  expect(printed.map((line) => line.split(" ")[1])).toEqual(writer.scenario.events.map(({ kind }) => kind));
});

it("the chat example posts a message when a dev loop fails", async () => {
  const posted: unknown[] = [];
  const chat = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      posted.push({ path: request.url, body: JSON.parse(body) });
      response.end();
    });
  });
  chat.listen(0, "127.0.0.1");
  await once(chat, "listening");
  const writer = harness.writer("ella");
  const address = `http://127.0.0.1:${(chat.address() as AddressInfo).port}`;
  await using _ = await start("Tell a chat", { "https://chat.example.com": address });
  await until(
    async () => {
      writer.session.loopStarted();
      writer.session.loopEnded("succeeded");
      writer.session.loopStarted();
      writer.session.loopEnded("failed");
      await writer.written();
      return posted.length > 0;
    },
    { message: "the failure to be reported" },
  );
  expect(posted[0]).toEqual({ path: "/hooks/builds", body: { text: "shop of ella: no" } });
  chat.closeAllConnections();
  chat.close();
});
