import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { npmPackages } from "@tapedeck/infra/names";
import { version } from "@tapedeck/shared/version";
import { root } from "./places.ts";
import { type Bom, npmBom } from "./sbom.ts";

const run = promisify(execFile);
const infra = join(root, "infra");
const hardened = ["tapedeck-ingest", "tapedeck-query", "tapedeck-gateway"];

export type DebianPackage = {
  /** Becomes the root folder of what is installed. */
  readonly folder: string;
  /** What `npm pack` made of the CLI and of the servers. */
  readonly archives: readonly string[];
  readonly file: string;
};

/**
 * Builds a Debian package of both npm packages, with the units of systemd. Needs npm and dpkg-deb.
 * @returns the bill of materials of what npm has installed in it
 */
export async function buildDebianPackage({ folder, archives, file }: DebianPackage): Promise<Bom> {
  const at = async (path: string) => {
    await mkdir(join(folder, path), { recursive: true });
    return join(folder, path);
  };
  const library = await at("usr/lib/tapedeck");
  const installed = await installInto(library, archives);
  const bin = await at("usr/bin");
  const modules = "../lib/tapedeck/node_modules";
  await symlink(`${modules}/${npmPackages.cli}/dist/tapedeck.cjs`, join(bin, "tapedeck"));
  await symlink(`${modules}/${npmPackages.server}/dist/tapedeck-server.js`, join(bin, "tapedeck-server"));

  await copyUnits(await at("usr/lib/systemd/system"));
  const etc = await at("etc/tapedeck");
  for (const name of ["nats.conf", "tapedeck.yaml"]) await copy(join(infra, "debian", name), join(etc, name), 0o644);
  await copy(join(infra, "nats", "tapedeck-users.conf"), join(etc, "nats-users.conf"), 0o644);
  const docs = await at("usr/share/doc/tapedeck");
  await copy(join(root, "LICENSE"), join(docs, "copyright"), 0o644);
  // For a cluster (docs/cluster.md).
  const examples = await at("usr/share/doc/tapedeck/examples");
  for (const name of ["nats/cluster.conf", "haproxy/haproxy.cfg"])
    await copy(join(infra, name), join(examples, basename(name)), 0o644);

  const control = await at("DEBIAN");
  await writeFile(join(control, "control"), await controlText(folder));
  const settings = ["nats.conf", "nats-users.conf", "tapedeck.yaml"];
  await writeFile(join(control, "conffiles"), settings.map((name) => `/etc/tapedeck/${name}\n`).join(""));
  for (const name of ["postinst", "prerm", "postrm"])
    await copy(join(infra, "debian", name), join(control, name), 0o755);
  await run("dpkg-deb", ["--root-owner-group", "-Zxz", "-z2", "--build", folder, file]);
  return installed;
}

/** Installs as npm does, without the scripts and notes that npm leaves behind. */
async function installInto(folder: string, archives: readonly string[]): Promise<Bom> {
  const flags = ["--prefix", folder, "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
  // npm sbom wants to know of what.
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "tapedeck-debian", version }));
  await run("npm", ["install", ...flags, ...archives], { cwd: folder });
  const installed = await npmBom(folder);
  for (const left of ["package.json", "package-lock.json", "node_modules/.package-lock.json"]) {
    await rm(join(folder, left), { force: true });
  }
  return installed;
}

async function copyUnits(to: string): Promise<void> {
  const units = (await readdir(join(infra, "systemd"))).filter((name) => /\.(service|target)$/.test(name));
  for (const unit of units) await copy(join(infra, "systemd", unit), join(to, unit), 0o644);
  for (const service of hardened) {
    const dropIns = join(to, `${service}.service.d`);
    await mkdir(dropIns);
    await copy(join(infra, "systemd", "hardened.conf"), join(dropIns, "hardened.conf"), 0o644);
  }
}

async function copy(from: string, to: string, mode: number): Promise<void> {
  await copyFile(from, to);
  await chmod(to, mode);
}

async function controlText(folder: string): Promise<string> {
  const { stdout } = await run("du", ["-sk", folder]);
  return `Package: tapedeck
Version: ${version}
Architecture: all
Maintainer: Tapedeck <tapedeck@localhost>
Installed-Size: ${Number.parseInt(stdout, 10)}
Depends: nodejs (>= 20), passwd
Recommends: nats-server (>= 2.12), postgresql
Section: devel
Priority: optional
Description: records Skaffold, Vagrant and rkt, and plays them back
 Records what development tools do in one durable log (NATS JetStream), and serves it through the tools' own
 APIs, as one feed, and as SQL. This package has the command line and the services, with units for systemd.
`;
}
