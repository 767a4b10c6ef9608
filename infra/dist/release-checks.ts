import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** Why the checkout in this folder can't be released as this version. Empty: it can. */
export async function reasonsAgainst(folder: string, version: string): Promise<readonly string[]> {
  if (!/^\d+\.\d+\.\d+$/.test(version)) return [`${version} is not a version such as 0.1.0`];
  const reasons = await Promise.all([
    uncommitted(folder),
    otherVersions(folder, version),
    changelogReasons(folder, version),
    tagReasons(folder, version),
    originReasons(folder, version),
  ]);
  return reasons.flat();
}

/** What the changelog says of a version. Its heading may have a date. */
export function changelogSection(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((one) => one.split(/\s/, 1)[0] === version) ?? "";
  return section.slice(section.indexOf("\n") + 1).trim();
}

async function uncommitted(folder: string): Promise<readonly string[]> {
  const changed = await git(folder, "status", "--porcelain");
  return changed === "" ? [] : [`there are uncommitted changes:\n${changed}`];
}

async function otherVersions(folder: string, version: string): Promise<readonly string[]> {
  const paths = ["*package.json", "package-lock.json", "*/Chart.yaml", "*/src/version.ts"];
  const listed = await git(folder, "ls-files", ...paths);
  const reasons = listed.split("\n").map(async (path) => {
    const others = versionsIn(path, await readFile(join(folder, path), "utf8")).filter((one) => one !== version);
    return others.map((other) => `${path} has version ${other}`);
  });
  return (await Promise.all(reasons)).flat();
}

/** The versions of Tapedeck that a file names: two for a chart, none for a package that is never published. */
function versionsIn(path: string, text: string): readonly string[] {
  if (path.endsWith(".json")) return [JSON.parse(text).version ?? []].flat();
  return [...text.matchAll(/^(?:version: |appVersion: |export const version = )"?([^"\n]*)/gm)].map(
    ([, found = ""]) => found,
  );
}

async function changelogReasons(folder: string, version: string): Promise<readonly string[]> {
  const changelog = await readFile(join(folder, "CHANGELOG.md"), "utf8");
  const isMissing = changelogSection(changelog, version) === "";
  const isUnreleased = changelogSection(changelog, "Unreleased") !== "";
  return [
    ...(isMissing ? [`CHANGELOG.md says nothing under "## ${version}"`] : []),
    ...(isUnreleased ? ['CHANGELOG.md has changes under "## Unreleased"'] : []),
  ];
}

async function tagReasons(folder: string, version: string): Promise<readonly string[]> {
  const head = await git(folder, "rev-parse", "HEAD");
  const tagged = await git(folder, "for-each-ref", "--format=%(objectname) %(*objectname)", `refs/tags/v${version}`);
  return tagged === "" || tagged.includes(head) ? [] : [`the tag v${version} is at another commit`];
}

/** A tag names a commit that main has at origin. Once origin has the tag, main may have moved on. */
async function originReasons(folder: string, version: string): Promise<readonly string[]> {
  const tag = `refs/tags/v${version}`;
  try {
    const listed = await git(folder, "ls-remote", "origin", "refs/heads/main", tag, `${tag}^{}`);
    const head = await git(folder, "rev-parse", "HEAD");
    return listed.includes(head) ? [] : ["HEAD is not the main of origin: push it, or check out origin/main"];
  } catch (error) {
    return [`origin does not answer: ${(error as Error).message.trim()}`];
  }
}

async function git(folder: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("git", [...args], { cwd: folder });
  return stdout.trimEnd();
}
