import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

export type InstalledPackage = {
  readonly name: string;
  readonly version: string;
  readonly scripts?: Readonly<Record<string, string>>;
};

/** All packages in a node_modules, at any depth. */
export async function installedPackages(modules: string): Promise<readonly InstalledPackage[]> {
  const entries = await readdir(modules, { withFileTypes: true });
  const found = await Promise.all(
    entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
      .map(({ name }) =>
        name.startsWith("@") ? installedPackages(join(modules, name)) : packageIn(join(modules, name)),
      ),
  );
  return found.flat();
}

async function packageIn(folder: string): Promise<readonly InstalledPackage[]> {
  const own: InstalledPackage = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const nested = join(folder, "node_modules");
  return [own, ...(existsSync(nested) ? await installedPackages(nested) : [])];
}

/** Packages that npm would run something of while it installs them. */
export function withInstallScripts(packages: readonly InstalledPackage[]): readonly string[] {
  const names = ["preinstall", "install", "postinstall"];
  return packages.filter(({ scripts = {} }) => names.some((name) => name in scripts)).map(({ name }) => name);
}
