import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { startCli } from "tapedeck/testing/cli";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "./stack.ts";

// Commands in the folder of a project, and names as people shorten them.

const cleanup = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), "folder-"));
let stack: Stack;

beforeAll(async () => {
  const recorded = (name: string) => startFakeSkaffold({ recording: loadRecording(recordingFolder(name)), speed: 2 });
  const bob = cleanup.use(await recorded("04-deploy-failure-then-recovery"));
  const alice = cleanup.use(await recorded("01-dev-success-3-artifacts-5-iterations"));
  const skaffold = [
    { developer: "bob", project: "shop", address: bob.address, labels: { branch: "fix" } },
    { developer: "alice", project: "shop", address: alice.address },
  ];
  stack = cleanup.use(await startStack({ skaffold }));
  await Promise.all([bob.play(), alice.play()]);
  // The folder has another name than the project.
  for (const name of ["work", "other"]) mkdirSync(join(folder, name));
  writeFileSync(
    join(folder, "work/skaffold.yaml"),
    "apiVersion: skaffold/v4beta11\nkind: Config\nmetadata:\n  name: Shop\n",
  );
  const areListed = async () => {
    const { out } = await tapedeck("other", "loops");
    return out.includes("bob/shop#4 ") && out.includes("alice/shop#5 ");
  };
  await until(areListed, { message: "all loops" });
});
afterAll(() => cleanup.disposeAsync());

async function tapedeck(cwd: string, ...words: string[]) {
  const env = { TAPEDECK_URL: `http://${stack.http}`, TAPEDECK_DEVELOPER: "bob" };
  await using cli = startCli(words, { cwd: join(folder, cwd), env });
  return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
}

it("means the source of the folder, as `tapedeck run` names it", async () => {
  expect((await tapedeck("work", "why")).out).toMatch(/^bob\/shop {2}loop 4 {2}failed/);
  expect((await tapedeck("work", "state")).out).toMatch(/^bob\/shop\/skaffold /);
  expect((await tapedeck("work", "logs", "--failed")).out).toContain("MalformedYAMLError");
  expect((await tapedeck("work", "open")).out).toMatch(/\/\?source=bob\/shop$/m);
  expect((await tapedeck("work", "wait", "--for", "loop.*", "--after", "start")).out).toMatch(/ bob\/shop +loop\./);
  const loops = async (...more: string[]) => (await tapedeck("work", "loops", ...more)).out.match(/^\w+(?=\/shop#)/gm);
  expect(new Set(await loops())).toEqual(new Set(["bob"]));
  expect(new Set(await loops("--all"))).toEqual(new Set(["alice", "bob"]));
  expect(new Set(await loops("alice"))).toEqual(new Set(["alice"]));
  // In any other folder all are meant, or one has to be named.
  expect(await tapedeck("other", "state")).toMatchObject({
    code: 1,
    err: expect.stringContaining("choose one with -s"),
  });
});

it("takes short names of sources and loops, and says which there are", async () => {
  expect((await tapedeck("work", "why", "2")).out).toMatch(/^bob\/shop {2}loop 2 {2}failed/);
  expect((await tapedeck("other", "why", "ali#1")).out).toMatch(/^alice\/shop {2}loop 1 {2}succeeded/);
  expect((await tapedeck("other", "why", "1")).err).toMatch(/several sources have a loop 1: .*bob\/shop#1/);
  expect((await tapedeck("other", "why", "alice/shop")).out).toMatch(/^Nothing has failed in alice\/shop\.\n/);
  expect((await tapedeck("other", "why", "boob")).err).toContain("did you mean bob?");
  for (const words of [["why", "shop"], ["state"]]) {
    const { code, err } = await tapedeck("other", ...words);
    expect([code, err]).toEqual([1, expect.stringMatching(/several sources match: .*alice\/shop/)]);
    const line = /^ {4}\S*tapedeck (.*)$/m.exec(err)?.[1] ?? "";
    expect((await tapedeck("other", ...line.split(" "))).code).toBe(0);
  }
  expect((await tapedeck("other", "state", "bob", "--at", "tomorrow")).err).toContain("in the future");
});

it("prints what a loop or its failed step printed, with times", async () => {
  const lines = async (...words: string[]) => (await tapedeck("work", "logs", ...words)).out.trimEnd().split("\n");
  const [all, loop, failed] = [await lines(), await lines("--loop", "2"), await lines("bob#2", "--failed")];
  expect([all.length > loop.length, loop.length > failed.length]).toEqual([true, true]);
  expect(loop).toEqual(expect.arrayContaining(failed));
  expect(failed.join("\n")).toContain('no matches for kind "Deploymint"');
  expect(failed.join("\n")).not.toContain("Watching for changes");
  expect(await lines("2", "--failed", "-t", "--tail", "1")).toEqual([
    expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z kubectl apply: exit status 1$/),
  ]);
  expect((await tapedeck("work", "logs", "--failed", "--loop", "3")).err).toMatch(/nothing has failed in loop 3/);
});

it("narrows lists and statistics by the same filters", async () => {
  const names = async (...words: string[]) =>
    new Set((await tapedeck("other", ...words)).out.match(/\b(alice|bob)\b/g));
  const filters = {
    loops: "--label branch=fix",
    sessions: "-s bob/shop",
    status: "--label branch=fix",
    "sessions --upstream skaffold": "--label branch=fix",
    "stats loops --group developer": "bob",
    "stats builds --group developer": "--developer bob",
  };
  for (const [list, filter] of Object.entries(filters)) {
    const words = list.split(" ");
    expect([list, await names(...words, "--artifact", "web")]).toEqual([list, new Set(["alice", "bob"])]);
    expect([list, await names(...words, "--artifact", "web", ...filter.split(" "))]).toEqual([list, new Set(["bob"])]);
    expect([list, await names(...words, "--artifact", "nosuch")]).toEqual([list, new Set()]);
  }
});
