import type { Difference } from "@tapedeck/client";
import type { Loop, Step } from "@tapedeck/client/lanes/step";
import { expect, it } from "vitest";
import { allChangedFiles, changedFiles } from "./changed-files.ts";
import { foldedDifferences } from "./differences.ts";
import { commitsPath, forgePath } from "./forge.ts";
import { deployedTags, shortTag, withUnchanged } from "./unchanged.ts";

it("the changed files are those that Skaffold names, each once with its last change", () => {
  const output =
    "Watching for changes...\nfiles added: [web/new.ts]\nfiles modified: [api/app.txt web/app.txt]\n" +
    "files modified: []\nfiles deleted: [web/new.ts]\nno files modified: here\n";
  expect(changedFiles(output)).toEqual([
    { path: "web/new.ts", change: "deleted" },
    { path: "api/app.txt", change: "modified" },
    { path: "web/app.txt", change: "modified" },
  ]);
  expect(changedFiles("Watching for changes...\n")).toEqual([]);
});

it("the files that git reports stand first, and Skaffold's name for one of them is not repeated", () => {
  const file: Difference = { ...difference("file", "shop/api/app.txt", "modified", null) };
  const output = "files modified: [api/app.txt ignored.txt]\n";
  expect(allChangedFiles([difference("label", "branch", "a", "b"), file], output)).toEqual([
    { path: "shop/api/app.txt", change: "modified" },
    { path: "ignored.txt", change: "modified" },
  ]);
});

const commit = "a0f3e2d91c77";

it.each([
  [
    "https://github.com/acme/shop",
    "https://github.com/acme/shop/tree/fix/a%23b",
    `https://github.com/acme/shop/commit/${commit}`,
  ],
  [
    "https://gitlab.acme.dev/team/shop",
    "https://gitlab.acme.dev/team/shop/-/tree/fix/a%23b",
    `https://gitlab.acme.dev/team/shop/-/commit/${commit}`,
  ],
  ["https://git.acme.dev/shop", undefined, undefined],
  ["javascript:alert(1)//github.com/", undefined, undefined],
  ["https://github.com/a?x=<b>", undefined, undefined],
  [undefined, undefined, undefined],
])("of %s, branch and commit lead to the forge, where it is known", (remote, branch, at) => {
  const labels = { branch: "fix/a#b", commit, ...(remote !== undefined && { remote }) };
  expect([forgePath(labels, "branch"), forgePath(labels, "commit")]).toEqual([branch, at]);
});

it("the commits between two loops lead to the forge", () => {
  const labels = { remote: "https://github.com/acme/shop" };
  expect(commitsPath(labels, "1234567", commit)).toBe(`https://github.com/acme/shop/compare/1234567...${commit}`);
  expect(commitsPath(labels, "main", commit)).toBeUndefined();
  expect(commitsPath({}, "1234567", commit)).toBeUndefined();
});

const difference = (kind: string, subject: string, left: string | null, right: string | null): Difference => ({
  kind,
  subject,
  text: "",
  left,
  right,
  evidence: [],
});

it("many settings of one side are one line, those with two values each have their own", () => {
  const branch = difference("label", "branch", "fix", "main");
  const alone = difference("label", "team", "a", null);
  const settings = ["a", "b", "c"].map((name) => difference("configuration", name, name, null));
  expect(foldedDifferences([...settings, branch, alone])).toEqual({
    valued: [branch, alone],
    oneSided: [{ side: "left", kind: "configuration", names: ["a", "b", "c"] }],
  });
});

const step = (kind: string, subject: string): Step => ({
  kind,
  subject,
  instance: "",
  startedAt: 1,
  endedAt: 2,
  isUntimed: false,
  outcome: "succeeded",
  error: "",
  cause: null,
  errorCode: "",
  isCached: false,
  position: "1",
  endPosition: "2",
});
const loop = (number: number, steps: readonly Step[], endedAt: number | undefined = 2): Loop => ({
  ...step("loop", ""),
  session: "01A",
  runner: 1,
  loop: number,
  steps,
  endedAt,
});
const row = (name: string, value: string) => ({ name, value, tone: "quiet" as const });
const artifacts = [{ title: "Artifacts", rows: [row("web", "succeeded"), row("api", "not started")] }];

it("an artifact that was not built again says since which loop it is unchanged", () => {
  const loops = [loop(1, [step("build", "web"), step("build", "api")]), loop(2, [step("build", "web")])];
  const [section] = withUnchanged(artifacts, loops);
  expect(section?.rows).toEqual([
    row("web", "succeeded"),
    { ...row("api", "unchanged since loop 1"), path: "/loops/01A.1.1" },
  ]);
  // It may still be built.
  const [running] = withUnchanged(
    artifacts,
    [...loops.slice(0, 1), loop(2, [], undefined)].map((one, index) =>
      index === 1 ? { ...one, endedAt: undefined } : one,
    ),
  );
  expect(running?.rows[1]?.value).toBe("last built in loop 1");
  expect(withUnchanged(artifacts, [])).toEqual(artifacts);
});

it("the tags are those of the last deploy, shortened where they are digests", () => {
  const digest = "f2d9ea410986662b5d5bd0733ff81045af86a6a4cb19767ca61a98a53f7979db";
  const list = (tag: string) =>
    `Tags used in deployment:\n - web -> web:${tag}\n - api -> api:${digest}\nStarting deploy...\n`;
  const tags = deployedTags(`Generating tags...\n - web -> web:0\n${list("1")}${list("2")}`);
  expect([...tags]).toEqual([
    ["web", "web:2"],
    ["api", `api:${digest}`],
  ]);
  expect(shortTag(`api:${digest}`)).toBe("api:f2d9ea410986…");
  expect(deployedTags(" - web -> web:0\n").size).toBe(0);
});
