/**
 * Builds what is published, for `npm run dist`: the npm packages, and with them what is made of them. Every file is named
 * in SHA256SUMS.
 *
 *   --to <folder>   where to; what is there is deleted (dist)
 *   --only <part>   beside the npm packages only x64, arm64 (executables) or debian, or with npm nothing; repeatable
 *   --without-docs  without the manual, for tests
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { version } from "@tapedeck/shared/version";
import { buildCliPackage, buildCliScript } from "./cli-package.ts";
import { buildClientPackage } from "./client-package.ts";
import { buildDebianPackage } from "./debian-package.ts";
import { bomWithDocs } from "./docs-site.ts";
import { buildExecutable } from "./executable.ts";
import { writeFormula } from "./homebrew-formula.ts";
import { type NpmPackage, pack } from "./npm-package.ts";
import { root } from "./places.ts";
import {
  bomOf,
  joined,
  type Materials,
  materialsOfExecutable,
  materialsOfPackage,
  npmBom,
  restricted,
  type Subject,
} from "./sbom.ts";
import { buildServerPackage } from "./server-package.ts";

const { values } = parseArgs({
  options: {
    to: { type: "string", default: join(root, "dist") },
    only: { type: "string", multiple: true },
    "without-docs": { type: "boolean", default: false },
  },
});
const to = resolve(values.to);
const withDocs = !values["without-docs"];
const stage = join(to, "stage");
const tapedeck: Subject = { name: "tapedeck", purl: `pkg:generic/tapedeck@${version}` };
const isSelected = (part: string) => values.only === undefined || values.only.includes(part);

// The built files are readable for everyone, whatever the umask.
process.umask(0o022);
if (!(await isOurs(to))) {
  console.error(`${to} holds something else: name a folder that is empty, or one that this command has filled.`);
  process.exit(1);
}
await rm(to, { recursive: true, force: true });
await mkdir(stage, { recursive: true });

const programs = [
  await timed("bundled the CLI", () => buildCliPackage(join(stage, "cli"))),
  await timed("bundled the servers", () => buildServerPackage(join(stage, "server"), { withDocs })),
];
const client = await timed("built the client", () => buildClientPackage(join(stage, "client")));
const packages = [...programs, client];
const archives = await timed("packed them", () => packAll(programs));
await packAll([client]);
const all = await timed("asked npm what they consist of", () => (withDocs ? bomWithDocs() : npmBom()));
for (const one of packages) {
  const { name } = one;
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  await writeBom(baseName(one), { name, purl }, await materialsOfPackage(all, one));
}
await writeFormula(join(to, "tapedeck.rb"), archives);

const script = await timed("bundled the executable", () => buildCliScript(join(stage, "script")));
for (const architecture of ["x64", "arm64"] as const) {
  if (!isSelected(architecture)) continue;
  const name = `tapedeck-${version}-linux-${architecture}`;
  const made = { script: script.file, architecture, folder: join(stage, architecture), file: join(to, name) };
  await timed(`built the executable for ${architecture}`, () => buildExecutable(made));
  await writeBom(name, tapedeck, materialsOfExecutable(all, script.bundled));
}

if (!existsSync("/usr/bin/dpkg-deb")) console.log("no Debian package: there is no dpkg-deb here");
else if (isSelected("debian")) {
  const name = `tapedeck_${version}_all`;
  const made = { folder: join(stage, "debian"), archives, file: join(to, `${name}.deb`) };
  const installed = await timed("built the Debian package", () => buildDebianPackage(made));
  const bundled = programs.flatMap((one) => one.bundled);
  await writeBom(name, tapedeck, joined(installed, restricted(all, bundled)));
}
await writeSums();

/** A bill of materials, beside what it is of. */
async function writeBom(base: string, subject: Subject, materials: Materials): Promise<void> {
  const text = JSON.stringify(bomOf(subject, materials, all), null, 2);
  await writeFile(join(to, `${base}.cdx.json`), `${text}\n`);
}

/** Nothing is there, or what an earlier run has left, also one that was interrupted. */
async function isOurs(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.length === 0 || names.includes("stage");
}

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const done = await work();
  console.log(`${what} (${((performance.now() - started) / 1_000).toFixed(1)} s)`);
  return done;
}

function baseName({ name }: NpmPackage): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}`;
}

async function packAll(all: readonly NpmPackage[]): Promise<readonly string[]> {
  const names: string[] = [];
  for (const one of all) names.push(await pack(one, to));
  return names.map((name) => join(to, name));
}

async function writeSums(): Promise<void> {
  const files = (await readdir(to, { withFileTypes: true })).filter((entry) => entry.isFile());
  const lines: string[] = [];
  for (const { name } of files) {
    const bytes = await readFile(join(to, name));
    console.log(`${(bytes.length / 1e6).toFixed(2).padStart(8)} MB  ${name}`);
    lines.push(`${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`);
  }
  await writeFile(join(to, "SHA256SUMS"), lines.toSorted().join(""));
}
