import { execFile } from "node:child_process";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { version } from "@tapedeck/shared/version";
import { root } from "./places.ts";

export type Publication = {
  readonly what: string;
  /** What publishes it in .github/workflows/release.yaml. */
  readonly by: string;
  /** A command that succeeds where it can be built. Default: everywhere. */
  readonly needs?: readonly [program: string, argument: string];
  /** Default: `npm run dist` has built it. */
  readonly build?: () => Promise<void>;
  /** Where it is. Default: on this machine alone, as in an image store. */
  readonly folder?: string;
  readonly files?: RegExp;
};

const dist = join(root, "dist");
/** What is published beside the files of `npm run dist`. */
export const releaseFolder = join(dist, "release");

/** All that a release consists of. */
export const publications: readonly Publication[] = [
  { what: "npm packages with provenance", by: "npm-publish.mjs", folder: dist, files: /^tapedeck-dev-.*\.tgz$/ },
  { what: "executables", by: "gh release create", folder: dist, files: /-linux-\w+$/ },
  {
    what: "Debian package",
    by: "gh release create",
    needs: ["dpkg-deb", "--version"],
    folder: dist,
    files: /\.deb$/,
  },
  { what: "Homebrew formula", by: "gh release create", folder: dist, files: /\.rb$/ },
  { what: "SBOMs", by: "gh release create", folder: dist, files: /\.cdx\.json$/ },
  { what: "checksums", by: "gh release create", folder: dist, files: /^SHA256SUMS$/ },
  {
    what: "image with its SBOM",
    by: "docker buildx build",
    needs: ["docker", "info"],
    build: () => run("docker", "build", "--file", "infra/docker/Dockerfile", "--tag", `tapedeck:${version}`, "."),
  },
  {
    what: "chart",
    by: "helm push",
    needs: ["helm", "version"],
    build: buildChart,
    folder: releaseFolder,
    files: /\.tgz$/,
  },
];

/** Packs a copy of the chart, because Helm writes the charts that it depends on beside it. */
async function buildChart(): Promise<void> {
  const copy = join(dist, "stage", "chart");
  await cp(join(root, "infra", "helm", "tapedeck"), copy, { recursive: true });
  await run("helm", "package", copy, "--dependency-update", "--destination", releaseFolder);
}

/** Whether this machine can build it. */
export async function canBuild({ needs }: Publication): Promise<boolean> {
  if (needs === undefined) return true;
  const [program, argument] = needs;
  return run(program, argument).then(
    () => true,
    () => false,
  );
}

/** @throws Error if a file that was to be built is missing */
export async function builtFiles({ what, folder, files }: Publication): Promise<readonly string[]> {
  if (folder === undefined || files === undefined) return [];
  const found = (await readdir(folder)).filter((name) => files.test(name));
  if (found.length === 0) throw new Error(`${what}: nothing in ${folder} matches ${files}`);
  return found;
}

async function run(program: string, ...args: readonly string[]): Promise<void> {
  await promisify(execFile)(program, [...args], { cwd: root, maxBuffer: 64 * 2 ** 20 });
}
