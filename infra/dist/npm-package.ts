import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { version } from "@tapedeck/shared/version";
import { root } from "./places.ts";
import { licenceText, type ThirdParty } from "./third-party.ts";

export type NpmPackage = {
  readonly folder: string;
  readonly name: string;
  readonly dependencies: readonly string[];
  readonly bundled: readonly ThirdParty[];
};

export type PackageAbout = {
  readonly name: string;
  readonly description: string;
  readonly readme: string;
  readonly manifest: {
    readonly bin: Readonly<Record<string, string>>;
    readonly exports?: Readonly<Record<string, string>>;
    readonly dependencies?: Readonly<Record<string, string>>;
  };
  /** Licences and notices of others, for what our files contain. */
  readonly bundled: readonly ThirdParty[];
};

/** Writes what npm wants of a package around its bundle. */
export async function writePackage(folder: string, about: PackageAbout): Promise<NpmPackage> {
  const { name, description, readme, manifest, bundled } = about;
  await mkdir(folder, { recursive: true });
  const { engines, license } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const repository = repositoryOf(process.env);
  const whole = { name, version, description, license, engines, repository, type: "module", ...manifest };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(whole, null, 2)}\n`);
  await writeFile(join(folder, "README.md"), readme);
  await copyFile(join(root, "LICENSE"), join(folder, "LICENSE"));
  await writeFile(join(folder, "THIRD-PARTY-LICENSES.txt"), licenceText(bundled));
  return { folder, name, dependencies: Object.keys(manifest.dependencies ?? {}), bundled };
}

/** The repository whose workflow runs this: npm publishes with provenance only where the package names it. */
export function repositoryOf({ GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name }: NodeJS.ProcessEnv) {
  return server && name ? { type: "git", url: `git+${server}/${name}.git` } : undefined;
}

/** `npm pack`. @returns the archive's name */
export async function pack({ folder }: NpmPackage, to: string): Promise<string> {
  const args = ["pack", folder, "--pack-destination", to, "--json"];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: root });
  const packed: unknown = JSON.parse(stdout);
  // npm 11 gives a list, npm 12 an object by name.
  const [{ filename }] = Object.values(packed as Readonly<Record<string, { readonly filename: string }>>) as [
    { readonly filename: string },
  ];
  return filename;
}
