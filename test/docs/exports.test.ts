import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

type Manifest = { readonly name: string; readonly exports?: Readonly<Record<string, string>> };

/** Imported under a name that is composed at run time: `up` starts the services and the demo's fakes. */
const startedByName = /^\.\/(.+\/)?main$/;

/** A service's exports for the CLI. */
const forCli = /^\.\/for-cli\//;

const files = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root })
  .toString()
  .split("\0")
  .filter((path) => existsSync(join(root, path)));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const sources = files.filter((path) => /\.(ts|mjs)$/.test(path)).map((path) => ({ path, text: read(path) }));
const packages = files
  .filter((path) => path.endsWith("/package.json"))
  .map((path) => ({ folder: dirname(path), manifest: JSON.parse(read(path)) as Manifest }));

it.each(packages)(
  "$manifest.name lists each module that it exports, and exports none in vain",
  ({ folder, manifest }) => {
    const listed = Object.entries(manifest.exports ?? {});
    expect(listed.filter(([name]) => name.includes("*"))).toEqual([]);
    expect(listed.filter(([, target]) => !existsSync(join(root, folder, target)))).toEqual([]);
    const elsewhere = sources.filter(({ path }) => !path.startsWith(`${folder}/`));
    const isImported = (name: string) => {
      const specifier = `"${join(manifest.name, name)}"`;
      return startedByName.test(name) || elsewhere.some(({ text }) => text.includes(specifier));
    };
    expect(listed.map(([name]) => name).filter((name) => !isImported(name))).toEqual([]);
  },
);

it("the CLI imports of services all that they export for it, and nothing else", () => {
  const exported = packages
    .filter(({ folder }) => folder.startsWith("services/"))
    .flatMap(({ manifest }) => Object.keys(manifest.exports ?? {}).map((name) => ({ name, of: manifest.name })))
    .flatMap(({ name, of }) => (forCli.test(name) ? [join(of, name)] : []));
  const ofServices = /"(@tapedeck\/(?:ingest|query|gateway)(?:\/[^"]*)?)"/g;
  const imported = sources
    .filter(({ path }) => path.startsWith("packages/cli/src/") && !/\.test\.ts$|\/testing\//.test(path))
    .flatMap(({ text }) => [...text.matchAll(ofServices)].map(([, specifier = ""]) => specifier));
  const allowed = [...read("biome.json").matchAll(/"!(@tapedeck\/[^"]*)"/g)].map(([, specifier = ""]) => specifier);
  expect([...new Set(imported)].toSorted()).toEqual(exported.toSorted());
  expect(allowed.toSorted()).toEqual(exported.toSorted());
  expect(exported.length).toBeLessThan(10);
});
