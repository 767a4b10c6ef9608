import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { version } from "@tapedeck/shared/version";
import type { NpmPackage } from "./npm-package.ts";
import { root } from "./places.ts";

export type Component = {
  readonly "bom-ref": string;
  readonly type?: string;
  readonly name: string;
  readonly version: string;
  readonly purl?: string;
  readonly cpe?: string;
  readonly externalReferences?: readonly { readonly url: string }[];
};
type Dependency = { readonly ref: string; readonly dependsOn?: readonly string[] };

/** What a bill lists, and which of it needs which. */
export type Materials = { readonly components: readonly Component[]; readonly dependencies: readonly Dependency[] };

/** CycloneDX, as far as it concerns us. */
export type Bom = Materials & {
  readonly serialNumber?: string;
  readonly metadata: Readonly<Record<string, unknown>>;
};

type Lock = { readonly packages: Readonly<Record<string, LockEntry>> };
type LockEntry = {
  readonly name?: string;
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};

/** npm's SBOM of the project in a folder, and of all that is installed there: of the checkout with its tools and tests. */
export async function npmBom(folder = root): Promise<Bom> {
  const { stdout } = await promisify(execFile)("npm", ["sbom", "--sbom-format", "cyclonedx"], {
    cwd: folder,
    maxBuffer: 64 * 2 ** 20,
  });
  return JSON.parse(stdout);
}

/** The materials of one package: all that it brings, or has npm install. */
export async function materialsOfPackage(all: Bom, { dependencies, bundled }: NpmPackage): Promise<Materials> {
  const lock: Lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  return restricted(all, [...bundled, ...installedWith(lock, dependencies)]);
}

/** The materials of a one-file executable: a Node, and what is in its script. */
export function materialsOfExecutable(all: Bom, bundled: readonly PackageId[]): Materials {
  const { node: version } = process.versions;
  const node: Component = {
    "bom-ref": `node@${version}`,
    type: "platform",
    name: "node",
    version,
    purl: `pkg:generic/node@${version}`,
    // Node's vulnerabilities are published under this name.
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
  };
  return joined({ components: [node], dependencies: [] }, restricted(all, bundled));
}

type PackageId = { readonly name: string; readonly version: string };

/**
 * The named part of a bill. npm's `bom-ref` is `name@version`; a package that the lock has under another name is there
 * under its own.
 * @throws Error for something wanted that the bill does not have
 */
export function restricted(all: Materials, packages: readonly PackageId[]): Materials {
  const refs = new Set(packages.map(({ name, version }) => `${name}@${version}`));
  const components = all.components.filter((one) => refs.has(one["bom-ref"]));
  const known = new Set(components.map((one) => one["bom-ref"]));
  const missing = [...refs].filter((one) => !known.has(one));
  if (missing.length > 0) throw new Error(`npm sbom does not know ${missing.join(", ")}`);
  const dependencies = all.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }));
  return { components, dependencies };
}

/** Everything that is in one of them, once. What a bill is of is not in it. */
export function joined(...parts: readonly Materials[]): Materials {
  const components = parts.flatMap((part) => part.components).map((one) => [one["bom-ref"], one] as const);
  const dependencies = parts.flatMap((part) => part.dependencies).map((one) => [one.ref, one] as const);
  const known = new Map(components);
  const kept = [...new Map(dependencies).values()].filter(({ ref }) => known.has(ref));
  return { components: [...known.values()], dependencies: kept };
}

export type Subject = {
  readonly name: string;
  /** How others know it (package-url). */
  readonly purl: string;
};

/** The bill of materials of something of this version. Format, time and tool are those of npm's. */
export function bomOf({ name, purl }: Subject, { components, dependencies }: Materials, npms: Bom): Bom {
  const self = { "bom-ref": `${name}@${version}`, type: "application", name, version, purl };
  return {
    ...npms,
    serialNumber: `urn:uuid:${randomUUID()}`,
    metadata: { ...npms.metadata, component: self },
    components: components.map(withoutLocalFiles),
    dependencies: [{ ref: self["bom-ref"], dependsOn: components.map((one) => one["bom-ref"]) }, ...dependencies],
  };
}

/** npm names the file from which it has installed a package: on the machine that built this, and of use nowhere else. */
function withoutLocalFiles({ externalReferences, ...component }: Component): Component {
  const elsewhere = externalReferences?.filter(({ url }) => !url.startsWith("file:"));
  return { ...component, ...(elsewhere !== undefined && { externalReferences: elsewhere }) };
}

/** The packages that npm installs with these, themselves included, as the lock resolves them. */
export function installedWith({ packages }: Lock, names: readonly string[]): readonly PackageId[] {
  const found = new Map<string, PackageId>();
  const visit = (from: string, name: string): void => {
    const path = resolvePath(packages, from, name);
    const entry = path === undefined ? undefined : packages[path];
    if (path === undefined || entry?.version === undefined || found.has(path)) return;
    found.set(path, { name: entry.name ?? path.slice(path.lastIndexOf("node_modules/") + 13), version: entry.version });
    for (const each of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) visit(path, each);
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
