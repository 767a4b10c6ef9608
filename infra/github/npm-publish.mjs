// Publishes npm packages, for the release workflow: node infra/github/npm-publish.mjs <archive> …
// What the registry has already is skipped, so that a release that failed half-way can be run again.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

for (const archive of process.argv.slice(2)) {
  const manifest = execFileSync("tar", ["-xzOf", archive, "package/package.json"], { encoding: "utf8" });
  const { name, version } = JSON.parse(manifest);
  const id = `${name}@${version}`;
  const published = publishedIntegrity(id);
  if (published === undefined) {
    execFileSync("npm", ["publish", resolve(archive), "--access", "public"], { stdio: "inherit" });
  } else if (published === integrityOf(archive)) console.log(`${id} is published already`);
  else {
    // The checksums of this release, such as the formula's, are of other files.
    console.error(`${id} is published with other content: run only the failed jobs again, or release a new version`);
    process.exit(1);
  }
}

/** Undefined: the registry has no such version. */
function publishedIntegrity(id) {
  try {
    return JSON.parse(
      execFileSync("npm", ["view", id, "dist.integrity", "--json"], { encoding: "utf8", stdio: "pipe" }),
    );
  } catch (error) {
    if (/"code": "E404"/.test(error.stdout)) return undefined;
    throw error;
  }
}

function integrityOf(archive) {
  return `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
}
