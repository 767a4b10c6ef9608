import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { paths, read, root } from "./repository.ts";

type Manifest = { readonly name: string; readonly exports?: Readonly<Record<string, string>> };

type Linter = { readonly overrides: readonly Override[] };
type Override = {
  readonly includes: readonly string[];
  readonly linter?: { readonly rules: { readonly style?: { readonly noRestrictedImports?: RestrictedImports } } };
};
type RestrictedImports = { readonly options: { readonly patterns: readonly { readonly group: readonly string[] }[] } };

/** Imported under a name that is composed at run time: `up` starts the services and the demo's fakes. */
const startedByName = /^\.\/(.+\/)?main$/;

/** A service's exports for the CLI. */
const forCli = /^\.\/for-cli\//;

const sources = paths.filter((path) => /\.(tsx?|mjs)$/.test(path)).map((path) => ({ path, text: read(path) }));
const packages = paths
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

/** The exceptions of the linter's rules for a folder: imports that are allowed although their package is not. */
const allowedIn = (folder: string) =>
  (JSON.parse(read("biome.json")) as Linter).overrides
    .filter(({ includes }) => includes.includes(folder))
    .flatMap(({ linter }) => linter?.rules.style?.noRestrictedImports?.options.patterns ?? [])
    .flatMap(({ group }) => group)
    .flatMap((pattern) => (pattern.startsWith("!") ? [pattern.slice(1)] : []));

it("the CLI imports of services all that they export for it, and nothing else", () => {
  const exported = packages
    .filter(({ folder }) => folder.startsWith("services/"))
    .flatMap(({ manifest }) => Object.keys(manifest.exports ?? {}).map((name) => ({ name, of: manifest.name })))
    .flatMap(({ name, of }) => (forCli.test(name) ? [join(of, name)] : []));
  const ofServices = /"(@tapedeck\/(?:ingest|query|gateway)(?:\/[^"]*)?)"/g;
  const imported = sources
    .filter(({ path }) => path.startsWith("packages/cli/src/") && !/\.test\.ts$|\/testing\//.test(path))
    .flatMap(({ text }) => [...text.matchAll(ofServices)].map(([, specifier = ""]) => specifier));
  const allowed = allowedIn("packages/cli/src/**");
  expect([...new Set(imported)].toSorted()).toEqual(exported.toSorted());
  expect(allowed.toSorted()).toEqual(exported.toSorted());
  expect(exported.length).toBeLessThan(10);
});

it("a package imports another one by its name, never by a relative path", () => {
  const packageOf = (path: string) =>
    packages.map(({ folder }) => folder).findLast((folder) => path.startsWith(`${folder}/`));
  const leaving = sources
    // The tests of infra use what infra/dist builds.
    .filter(({ path }) => !path.startsWith("infra/"))
    .flatMap(({ path, text }) => {
      const relative = [...text.matchAll(/(?:from|import) "(\.[^"]*)"/g)].map(([, specifier = ""]) => specifier);
      const outside = relative.filter((specifier) => packageOf(join(dirname(path), specifier)) !== packageOf(path));
      return outside.map((specifier) => `${path}: ${specifier}`);
    });
  expect(leaving).toEqual([]);
});
