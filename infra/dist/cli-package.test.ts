import { execFile } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { npmPackages } from "@tapedeck/infra/names";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.ts";
import { buildCliPackage } from "./cli-package.ts";

it("the CLI's package has no server in it", async () => {
  await expect(buildCliPackage(await temporaryFolder())).resolves.toMatchObject({ name: npmPackages.cli });
});

/** Writes the paths of all modules that a program has loaded, when it ends. */
const listLoaded = `process.on("exit", () => require("node:fs").writeFileSync(process.env.LOADED, JSON.stringify(Object.keys(require.cache))));`;

/** Texts that only these parts have, and that stay when they are made small. */
const heavy = {
  grpc: "grpc-node-js/",
  descriptors: "FileDescriptorSet",
  skaffold: "/proto.v2.SkaffoldV2Service/GetState",
  vagrant: "/hashicorp.vagrant.Vagrant/",
  rkt: "/v1alpha.PublicAPI/",
};

it("`run` of a command without a Skaffold loads no gRPC and no upstream", async () => {
  const folder = await temporaryFolder();
  await buildCliPackage(folder);
  const [preload, loaded] = [join(folder, "list-loaded.cjs"), join(folder, "loaded.json")];
  writeFileSync(preload, listLoaded);
  const env = { PATH: process.env.PATH, HOME: folder, TAPEDECK_URL: "127.0.0.1:10", LOADED: loaded };
  const words = ["--require", preload, join(folder, "dist", "tapedeck.cjs"), "run", "--", "true"];
  await promisify(execFile)(process.execPath, words, { cwd: folder, env });
  const partsIn = (paths: readonly string[]) => {
    const texts = paths.map((path) => readFileSync(path, "utf8"));
    return Object.entries(heavy).flatMap(([part, text]) => (texts.some((each) => each.includes(text)) ? [part] : []));
  };
  expect(partsIn(globSync(join(folder, "dist", "*.cjs")))).toEqual(Object.keys(heavy));
  const paths: readonly string[] = JSON.parse(readFileSync(loaded, "utf8"));
  expect(paths.some((path) => /\/record-command-[^/]*\.cjs$/.test(path))).toBe(true);
  expect(partsIn(paths)).toEqual([]);
});
