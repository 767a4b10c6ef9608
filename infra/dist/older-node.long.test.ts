import { execFile } from "node:child_process";
import { globSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { expect, it } from "vitest";
import { root } from "./places.ts";

const { resolve } = createRequire(import.meta.url);

/** Newer than the oldest Node of `engines`. The code asks whether they are there, or does as well without. */
const guarded = [
  "packages/cli/src/commands/run/take-over.ts: execve",
  "packages/cli/src/gateway-address.ts: getCACertificates",
  "packages/cli/src/gateway-address.ts: setDefaultCACertificates",
  "packages/cli/src/main.ts: enableCompileCache",
  "packages/shared/src/log/batch/zstd.ts: ZSTD_c_compressionLevel",
  "packages/shared/src/service/loop-delay.ts: ELDHistogram",
  "packages/shared/src/service/loop-delay.ts: samplePerIteration",
  "packages/shared/src/service/process/lifecycle.ts: flushCompileCache",
];

/** All modules of the published programs are reached from these. */
const programs = [
  "infra/dist/programs/{server,executable,check}.ts",
  "packages/cli/src/main.ts",
  "services/*/src/main.ts",
];

it("the published programs use nothing that the oldest Node of `engines` lacks, unless they ask for it first", async () => {
  await using temporary = await temporaryFolder();
  const config = join(temporary.folder, "tsconfig.json");
  const compilerOptions = { typeRoots: [join(root, "node_modules/@node20")], types: ["node"] };
  const files = globSync([...programs, "packages/cli/src/commands/*/{command,run}.ts"], { cwd: root }).map((path) =>
    join(root, path),
  );
  writeFileSync(
    config,
    JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, files, include: [], exclude: [] }),
  );
  const found = (await compiled(config)).filter(({ file }) => !file.includes("node_modules"));
  expect([...new Set(found.map(({ file, name }) => `${file}: ${name}`))].sort()).toEqual(guarded);
}, 240_000);

type CompilerError = { readonly file: string; readonly name: string };

/** What the compiler has to say, and the name in quotes that it is about. */
async function compiled(config: string): Promise<readonly CompilerError[]> {
  const compiler = join(dirname(resolve("typescript/package.json")), "bin", "tsc");
  const output = await new Promise<string>((done) => {
    execFile(process.execPath, [compiler, "-p", config], { cwd: root, maxBuffer: 2 ** 24 }, (_, out, errors) =>
      done(out + errors),
    );
  });
  return [...output.matchAll(/^(\S+)\(\d+,\d+\): error \w+: (.*)$/gm)].map(([, file = "", text = ""]) => ({
    file: relative(root, join(root, file)),
    name: /(?:Property|member named|and) '(\w+)'/.exec(text)?.[1] ?? text,
  }));
}
