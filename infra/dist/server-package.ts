import { cp } from "node:fs/promises";
import { join } from "node:path";
import { npmPackages } from "@tapedeck/infra/names";
import { demoRecordings } from "tapedeck/commands/up/demo";
import { bundle } from "./bundle.ts";
import { copyDocs } from "./docs-site.ts";
import { type NpmPackage, writePackage } from "./npm-package.ts";
import { root } from "./places.ts";
import { serverParts } from "./server-parts.ts";
import { embeddedDescriptors, programEntry, programs } from "./source-plugins.ts";
import { aboutPackage, installedFolder, type ThirdParty } from "./third-party.ts";

const services = ["ingest", "query", "gateway"];
const standIns = ["skaffold", "vagrant", "rkt"];

/** Loaded by pino by its name. */
const namedOnly = ["pino-pretty"];

/** In the page, which Vite has bundled. */
const inPage = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

/**
 * The services with the page and the manual, and the commands that run and maintain them. Packages of others are its
 * dependencies.
 */
export async function buildServerPackage(
  folder: string,
  { withDocs }: { readonly withDocs: boolean },
): Promise<NpmPackage> {
  const to = join(folder, "dist");
  const { packages } = await bundle({
    folder: to,
    input: {
      ...Object.fromEntries(services.map((name) => [name, programEntry(`@tapedeck/${name}/main`)])),
      ...Object.fromEntries(standIns.map((name) => [`fakes-${name}`, programEntry(`@tapedeck/fakes/${name}/main`)])),
      ...Object.fromEntries(serverParts.map(({ name, module }) => [name, join(root, "packages/cli/src", module)])),
      "tapedeck-server": programEntry(join(import.meta.dirname, "programs", "server.ts")),
      "mask-worker": programEntry(join(root, "services/ingest/src/normalize/mask-thread/mask-worker.ts")),
    },
    installation: "package",
    plugins: [programs(), embeddedDescriptors()],
    ownCodeOnly: true,
  });
  await cp(join(root, "packages/web/dist"), join(to, "page"), { recursive: true });
  const inDocs = withDocs ? await copyDocs(join(to, "docs")) : [];
  for (const { upstream, recording } of demoRecordings) {
    const within = join(upstream, recording);
    await cp(join(root, "packages/fakes/recordings", within), join(to, "recordings", within), { recursive: true });
  }
  const needed = [...new Set([...packages, ...namedOnly])].toSorted();
  return writePackage(folder, {
    name: npmPackages.server,
    description: "Tapedeck's servers: ingest, query, and the gateway with the page and the manual.",
    readme: `# Tapedeck's servers

\`\`\`
npm install --global ${npmPackages.cli} ${npmPackages.server}
tapedeck up                          # all on this machine, with a NATS and a Postgres of its own
tapedeck-server ingest|query|gateway # one of them, on the NATS and Postgres that TAPEDECK_NATS_URL and TAPEDECK_POSTGRES_URL name
\`\`\`
`,
    manifest: {
      bin: { "tapedeck-server": "dist/tapedeck-server.js" },
      exports: {
        "./package.json": "./package.json",
        ...Object.fromEntries(serverParts.map(({ name }) => [`./${name}`, `./dist/${name}.js`])),
      },
      dependencies: Object.fromEntries(needed.map((name) => [name, versionOf(name)])),
    },
    bundled: [...[...inPage, "core-js"].map((name) => aboutPackage(installedFolder(root, name))), ...inDocs],
  });
}

/** The version tested in the checkout, under its own name where the checkout has an alias. */
function versionOf(name: string): string {
  const installed: ThirdParty = aboutPackage(installedFolder(root, name));
  return installed.name === name ? installed.version : `npm:${installed.name}@${installed.version}`;
}
