import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { version } from "@tapedeck/shared/version";
import type { NpmPackage } from "./npm-package.ts";
import { root } from "./places.ts";

type Component = { readonly "bom-ref": string; readonly name: string; readonly version: string };
type Dependency = { readonly ref: string; readonly dependsOn?: readonly string[] };

/** CycloneDX, as far as it concerns us. */
export type Bom = {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly components: readonly Component[];
  readonly dependencies: readonly Dependency[];
};

type Lock = { readonly packages: Readonly<Record<string, LockEntry>> };
type LockEntry = {
  readonly name?: string;
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
};

/** npm's SBOM of the whole checkout, with its tools and tests. */
export async function checkoutBom(): Promise<Bom> {
  const { stdout } = await promisify(execFile)("npm", ["sbom", "--sbom-format", "cyclonedx"], {
    ...{ cwd: root, maxBuffer: 64 * 2 ** 20 },
  });
  return JSON.parse(stdout);
}

/** Writes the software bill of materials of one package: of all that it brings, or has npm install. */
export async function writeBom(file: string, all: Bom, { name, dependencies, bundled }: NpmPackage): Promise<number> {
  const lock: Lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  const wanted = new Set([
    ...bundled.map((one) => `${one.name}@${one.version}`),
    ...installedWith(lock, dependencies).map(({ name, version }) => `${name}@${version}`),
  ]);
  const bom = restricted(all, { name, version, wanted });
  await writeFile(file, `${JSON.stringify(bom, null, 2)}\n`);
  return bom.components.length;
}

export type Restriction = {
  readonly name: string;
  readonly version: string;
  /** `name@version` of all that stay, which is what npm calls `bom-ref`. A package that the lock has under another name is there under its own. */
  readonly wanted: ReadonlySet<string>;
};

/** A bill of materials of less. @throws Error for something wanted that it does not have */
export function restricted(all: Bom, { name, version, wanted }: Restriction): Bom {
  const components = all.components.filter((one) => wanted.has(one["bom-ref"]));
  const known = new Set(components.map((one) => one["bom-ref"]));
  const missing = [...wanted].filter((one) => !known.has(one));
  if (missing.length > 0) throw new Error(`npm sbom does not know ${missing.join(", ")}`);
  const refs = new Set(components.map((one) => one["bom-ref"]));
  const self = `${name}@${version}`;
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  return {
    ...all,
    metadata: { ...all.metadata, component: { "bom-ref": self, type: "application", name, version, purl } },
    components,
    dependencies: [
      { ref: self, dependsOn: [...refs] },
      ...all.dependencies
        .filter(({ ref }) => refs.has(ref))
        .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) })),
    ],
  };
}

/** The packages that npm installs with these, themselves included, as the lock resolves them. */
export function installedWith(
  { packages }: Lock,
  names: readonly string[],
): readonly { name: string; version: string }[] {
  const found = new Map<string, { name: string; version: string }>();
  const visit = (from: string, name: string): void => {
    const path = resolvePath(packages, from, name);
    const entry = path === undefined ? undefined : packages[path];
    if (path === undefined || entry?.version === undefined || found.has(path)) return;
    found.set(path, { name: entry.name ?? path.slice(path.lastIndexOf("node_modules/") + 13), version: entry.version });
    for (const each of Object.keys(entry.dependencies ?? {})) visit(path, each);
  };
  for (const name of names) visit("", name);
  return [...found.values()];
}

/** Where the package at `from` finds a package, looking outwards as Node does. */
function resolvePath(packages: Lock["packages"], from: string, name: string): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    const path = `${at === "" ? "" : `${at}/`}node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (at === "") return undefined;
  }
}
