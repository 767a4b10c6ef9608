import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { npmPackages } from "@tapedeck/infra/names";

// Writes what can be published, or served to browsers as it is: `node build.ts [folder] [repository]`, by default into dist/.

const here = import.meta.dirname;
const folder = resolve(process.argv[2] ?? join(here, "dist"));
rmSync(folder, { recursive: true, force: true });

const tsc = fileURLToPath(new URL("bin/tsc", import.meta.resolve("typescript/package.json")));
execFileSync(process.execPath, [tsc, "-p", join(here, "tsconfig.build.json"), "--outDir", folder], {
  stdio: "inherit",
});

const { version, description, license } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const manifest = {
  name: npmPackages.client,
  version,
  description,
  license,
  repository: JSON.parse(process.argv[3] ?? "null") ?? undefined,
  type: "module",
  sideEffects: false,
  engines: { node: ">=20" },
  exports: { ".": { types: "./index.d.ts", default: "./index.js" } },
};
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
cpSync(join(here, "README.md"), join(folder, "README.md"));
cpSync(join(here, "../../LICENSE"), join(folder, "LICENSE"));
