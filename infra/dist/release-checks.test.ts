import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { changelogSection, reasonsAgainst } from "./release-checks.ts";

const git = (folder: string, ...args: readonly string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd: folder });

/** A repository that can be released as 1.2.3, but for these files. */
async function repository(changed: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await temporaryFolder();
  const files: Readonly<Record<string, string>> = {
    "package.json": '{ "version": "1.2.3" }',
    "package-lock.json": '{ "version": "1.2.3" }',
    "tools/package.json": "{}",
    "chart/Chart.yaml": 'version: 1.2.3\nappVersion: "1.2.3"\ndependencies:\n  - version: 7.0.0\n',
    "shared/src/version.ts": 'export const version = "1.2.3";\n',
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-12-01)\n\n- Records.\n\n## 1.2.2\n\n- Starts.\n",
    ...changed,
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  git(folder, "init", "--quiet", "--initial-branch", "main");
  git(folder, "add", ".");
  git(folder, "commit", "--quiet", "--message", "Start");
  git(folder, "init", "--quiet", "--bare", join(folder, ".git", "origin"));
  git(folder, "remote", "add", "origin", join(folder, ".git", "origin"));
  git(folder, "push", "--quiet", "origin", "main");
  return folder;
}

it("a clean checkout of the version with a changelog can be released, also once its tag is made", async () => {
  const folder = await repository();
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual([]);
  git(folder, "tag", "--annotate", "v1.2.3", "--message", "1.2.3");
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual([]);
});

it.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
  ["a package", { "package.json": '{ "version": "1.2.2" }' }, ["package.json has version 1.2.2"]],
  ["the lock file", { "package-lock.json": '{ "version": "1.2.2" }' }, ["package-lock.json has version 1.2.2"]],
  ["the chart", { "chart/Chart.yaml": "version: 1.2.3\nappVersion: 1.2.2\n" }, ["chart/Chart.yaml has version 1.2.2"]],
  [
    "the programs",
    { "shared/src/version.ts": 'export const version = "1.2.2";\n' },
    ["shared/src/version.ts has version 1.2.2"],
  ],
])("another version of %s prevents a release", async (_, changed, reasons) => {
  expect(await reasonsAgainst(await repository(changed), "1.2.3")).toEqual(reasons);
});

it("a release needs its section of the changelog, and no changes outside of it", async () => {
  const folder = await repository({ "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- Records.\n\n## 1.2.3\n" });
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual([
    'CHANGELOG.md says nothing under "## 1.2.3"',
    'CHANGELOG.md has changes under "## Unreleased"',
  ]);
});

it("changes that are not committed prevent a release", async () => {
  const folder = await repository();
  await writeFile(join(folder, "new.ts"), "");
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual(["there are uncommitted changes:\n?? new.ts"]);
});

it("a tag at another commit prevents a release", async () => {
  const folder = await repository();
  git(folder, "tag", "v1.2.3");
  git(folder, "commit", "--quiet", "--allow-empty", "--message", "Go on");
  git(folder, "push", "--quiet", "origin", "main");
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual(["the tag v1.2.3 is at another commit"]);
});

it("a commit that is not the main of origin can't be released, unless origin has its tag", async () => {
  const folder = await repository();
  git(folder, "commit", "--quiet", "--allow-empty", "--message", "Go on");
  const reason = "HEAD is not the main of origin: push it, or check out origin/main";
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual([reason]);
  git(folder, "push", "--quiet", "origin", "main");
  git(folder, "checkout", "--quiet", "HEAD~1");
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual([reason]);
  git(folder, "tag", "--annotate", "v1.2.3", "--message", "1.2.3");
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual([reason]);
  git(folder, "push", "--quiet", "origin", "v1.2.3");
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual([]);
});

it("a checkout whose origin does not answer can't be released", async () => {
  const folder = await repository();
  git(folder, "remote", "remove", "origin");
  expect(await reasonsAgainst(folder, "1.2.3")).toEqual([expect.stringMatching(/^origin does not answer: /)]);
});

it.each(["", "1.2", "v1.2.3", "1.2.3-beta.1"])("a release can't be called %j", async (version) => {
  expect(await reasonsAgainst(await repository(), version)).toEqual([`${version} is not a version such as 0.1.0`]);
});

it("the notes of a release are its section of the changelog", () => {
  const changelog = "# Changelog\n\n## 1.2.3 (2026-12-01)\n\n### Fixed\n\n- One.\n\n## 1.2\n\n- Two.\n";
  expect(changelogSection(changelog, "1.2.3")).toBe("### Fixed\n\n- One.");
  expect(changelogSection(changelog, "1.2")).toBe("- Two.");
  expect(changelogSection(changelog, "1")).toBe("");
});
