import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

type Packed = readonly { readonly files: readonly { readonly path: string }[] }[];

it("the package carries its generated code, and nothing that only generates it", async () => {
  const cwd = import.meta.dirname;
  const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json"], { cwd });
  // npm 12 answers with an object by package name, npm 11 with a list.
  const packed: Packed = Object.values(JSON.parse(stdout));
  const paths = packed.flatMap(({ files }) => files.map(({ path }) => path));
  expect(paths).toEqual(expect.arrayContaining(["gen/descriptors.binpb", "gen/tapedeck/v1/event.ts"]));
  const { default: manifest } = await import("./package.json", { with: { type: "json" } });
  expect(Object.keys(manifest.dependencies).sort()).toEqual(["@bufbuild/protobuf", "@grpc/grpc-js"]);
});
