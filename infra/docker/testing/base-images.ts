import { realpath, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { BuildStep, ImageStore } from "./image-store.ts";
import { onMachine } from "./on-machine.ts";

/**
 * Stand-ins for the public images that the Dockerfile starts from, under their names: Debian's packages as a registry's
 * `debian:trixie-slim` has them, and on top of them the checkout's Node and this machine's npm.
 */
export async function makeBaseImages(store: ImageStore, folder: string): Promise<void> {
  const archive = join(folder, "debian.tar");
  const left = ["man", "doc", "info", "locale"].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`);
  await onMachine("mmdebstrap", ["--quiet", "--variant=minbase", ...left, "trixie", archive]);
  await store.commit("debian:trixie-slim", "scratch", [["add", archive, "/"]]);
  await rm(archive);

  const npm = dirname(dirname(await realpath((await onMachine("sh", ["-c", "command -v npm"])).trim())));
  const modules = "/usr/local/lib/node_modules/npm";
  const steps: BuildStep[] = [
    ["copy", process.execPath, "/usr/local/bin/node"],
    ["copy", npm, modules],
    ["run", "ln", "-s", `${modules}/bin/npm-cli.js`, "/usr/local/bin/npm"],
  ];
  // Whom this machine's npm trusts, where its registry is reached by a proxy. The last stage starts from Debian's image.
  const { NODE_EXTRA_CA_CERTS: authorities } = process.env;
  if (authorities === undefined) await store.commit("node:24-trixie-slim", "debian:trixie-slim", steps);
  else {
    const trusted = [...steps, ["copy", authorities, "/authorities.crt"] as const];
    await store.commit("node:24-trixie-slim", "debian:trixie-slim", trusted, {
      NODE_EXTRA_CA_CERTS: "/authorities.crt",
    });
  }
}
