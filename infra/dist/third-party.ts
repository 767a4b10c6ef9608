import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type ThirdParty = {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly folder: string;
};

const inPackages = "/node_modules/";

/** The packages of others that these modules, given by their paths, belong to, by name. */
export function thirdPartyOf(modules: readonly string[]): readonly ThirdParty[] {
  const folders = new Set(modules.flatMap((path) => folderOf(path) ?? []));
  return [...folders].map(aboutPackage).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function folderOf(path: string): string | undefined {
  const at = path.lastIndexOf(inPackages);
  if (at < 0) return undefined;
  const [scope = "", name = ""] = path.slice(at + inPackages.length).split("/");
  return join(path.slice(0, at), inPackages, scope.startsWith("@") ? join(scope, name) : scope);
}

/** Name, version and licence of the package that is installed in this folder. */
export function aboutPackage(folder: string): ThirdParty {
  const { name, version, license = "see below" } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return { name, version, license: typeof license === "string" ? license : license.type, folder };
}

/**
 * The licences of what is in a bundle, in one text.
 * @throws Error for a package that brings neither a licence's text nor its name
 */
export function licenceText(packages: readonly ThirdParty[]): string {
  const parts = packages.map(({ name, version, license, folder }) => {
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
    const texts = files.map((file) => readFileSync(join(folder, file), "utf8").trim());
    if (texts.length === 0 && license === "see below") throw new Error(`${name} declares no licence`);
    return [`${name} ${version} (${license})`, ...texts].join("\n\n");
  });
  const line = `\n\n${"-".repeat(80)}\n\n`;
  return `${["This package contains code of these packages, under their licences.", ...parts].join(line)}\n`;
}

/** Where npm has put a package in the checkout. @throws Error if it has not */
export function installedFolder(root: string, name: string): string {
  const folder = join(root, "node_modules", name);
  if (!existsSync(join(folder, "package.json"))) throw new Error(`${name} is not installed: run npm ci`);
  return folder;
}
