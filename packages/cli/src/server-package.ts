import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { npmPackages } from "@tapedeck/infra/names";
import { installation } from "@tapedeck/shared/installation";
import { version } from "@tapedeck/shared/version";
import { CommandError } from "./command-error.ts";

/**
 * Loads a command that needs the servers from their package, which npm puts beside this one. Only bundles call it: the
 * checkout has all commands in one place (infra/dist/server-parts.ts).
 * @throws CommandError when the package is not installed, or has another version
 */
export async function fromServerPackage(part: string): Promise<Readonly<Record<string, unknown>>> {
  const name = npmPackages.server;
  const install = `npm install --global ${npmPackages.cli}@${version} ${name}@${version}`;
  const require = installation === "package" ? createRequire(import.meta.url) : undefined;
  let manifest: string | undefined;
  try {
    manifest = require?.resolve(`${name}/package.json`);
  } catch {
    // reported below
  }
  if (require === undefined || manifest === undefined)
    throw new CommandError(`this needs Tapedeck's servers, which are a package of their own: ${install}`);
  const found: { readonly version: string } = require(manifest);
  if (found.version !== version)
    throw new CommandError(`${name} is version ${found.version}, and this is ${version}: ${install}`);
  return import(pathToFileURL(require.resolve(`${name}/${part}`)).href);
}
