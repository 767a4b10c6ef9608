/**
 * Checks and builds a release, for `npm run release -- <version>`, and pushes its tag. The tag starts
 * .github/workflows/release.yaml, which builds the same again and publishes it.
 *
 *   --dry-run   push no tag
 */
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./places.ts";
import { builtFiles, canBuild, publications, releaseFolder } from "./publications.ts";
import { changelogSection, reasonsAgainst } from "./release-checks.ts";

const { values, positionals } = parseArgs({
  options: { "dry-run": { type: "boolean", default: false } },
  allowPositionals: true,
});
const [version = ""] = positionals;
const inherit = { cwd: root, stdio: "inherit" } as const;

const reasons = await reasonsAgainst(root, version);
for (const reason of reasons) console.error(reason);
if (reasons.length > 0) process.exit(1);

execFileSync(process.execPath, [join(root, "infra", "dist", "main.ts")], inherit);
await mkdir(releaseFolder);
const notes = changelogSection(await readFile(join(root, "CHANGELOG.md"), "utf8"), version);
await writeFile(join(releaseFolder, "notes.md"), `${notes}\n`);

const lines: string[] = [];
for (const publication of publications) {
  const { what, by, build, needs = [] } = publication;
  const isBuilt = await canBuild(publication);
  if (isBuilt) await build?.();
  const files = isBuilt ? await builtFiles(publication) : [`not built here: \`${needs.join(" ")}\` fails`];
  lines.push(`  ${by.padEnd(20)}  ${[what, ...files].join("\n".padEnd(27))}`);
}
console.log(`\nThe workflow publishes for v${version}:\n${lines.join("\n")}`);

if (values["dry-run"]) console.log("\nNo tag is pushed, because this is a dry run.");
else {
  execFileSync("git", ["tag", "--annotate", "--force", `v${version}`, "--message", `Tapedeck ${version}`], inherit);
  execFileSync("git", ["push", "origin", `refs/tags/v${version}`], inherit);
}
