import { version } from "@tapedeck/shared/version";
import { expect, it } from "vitest";
import { type Bom, bomOf, installedWith, joined, materialsOfExecutable, restricted } from "./sbom.ts";

const component = (name: string, version: string) => ({ "bom-ref": `${name}@${version}`, name, version });
const all: Bom = {
  metadata: { tools: [] },
  components: [
    component("a", "1.0.0"),
    component("b", "2.0.0"),
    component("b", "1.0.0"),
    component("test-tool", "1.0.0"),
  ],
  dependencies: [
    { ref: "a@1.0.0", dependsOn: ["b@1.0.0", "test-tool@1.0.0"] },
    { ref: "test-tool@1.0.0", dependsOn: ["b@2.0.0"] },
  ],
};

it("a bill has what is in its subject, and nothing of the checkout beside", () => {
  const materials = restricted(all, [
    { name: "a", version: "1.0.0" },
    { name: "b", version: "1.0.0" },
  ]);
  const bom = bomOf({ name: "p", purl: "pkg:generic/p" }, materials, all);
  expect(bom.components.map((one) => one["bom-ref"])).toEqual(["a@1.0.0", "b@1.0.0"]);
  expect(bom.dependencies).toEqual([
    { ref: `p@${version}`, dependsOn: ["a@1.0.0", "b@1.0.0"] },
    { ref: "a@1.0.0", dependsOn: ["b@1.0.0"] },
  ]);
  expect(bom.metadata).toMatchObject({ tools: [], component: { "bom-ref": `p@${version}`, purl: "pkg:generic/p" } });
});

it("a package that npm does not know is an error and not an omission", () => {
  expect(() => restricted(all, [{ name: "c", version: "1.0.0" }])).toThrow("c@1.0.0");
});

it("a bill has no paths of the machine that made it", () => {
  const [local, remote] = [{ url: "file:/build/p.tgz" }, { url: "https://registry.example/p.tgz" }];
  const materials = {
    components: [{ ...component("p", "1.0.0"), externalReferences: [local, remote] }],
    dependencies: [],
  };
  expect(bomOf({ name: "q", purl: "pkg:generic/q" }, materials, all).components).toEqual([
    { ...component("p", "1.0.0"), externalReferences: [remote] },
  ]);
});

it("an executable consists of a Node and of what its script contains", () => {
  const { components } = materialsOfExecutable(all, [{ name: "b", version: "2.0.0" }]);
  expect(components.map((one) => one["bom-ref"])).toEqual([`node@${process.versions.node}`, "b@2.0.0"]);
});

it("a component of two parts is there once", () => {
  const [one, other] = [restricted(all, [{ name: "a", version: "1.0.0" }]), all];
  expect(joined(one, other).components).toHaveLength(all.components.length);
  expect(joined(one, other).dependencies).toEqual(all.dependencies);
  const itself = { components: [], dependencies: [{ ref: "whole@1.0.0", dependsOn: ["a@1.0.0"] }] };
  expect(joined(itself, one).dependencies).toEqual(one.dependencies);
});

it("a dependency, also an optional one, is found as Node finds it: the nearest, under its own name", () => {
  const packages = {
    "": {},
    "node_modules/a": { version: "1.0.0", dependencies: { b: "^1" } },
    "node_modules/a/node_modules/b": { version: "1.0.0", dependencies: { a: "*" } },
    "node_modules/b": { version: "2.0.0" },
    "node_modules/alias": { name: "@scope/real", version: "4.0.0", optionalDependencies: { b: "*", elsewhere: "*" } },
  };
  expect(installedWith({ packages }, ["a"])).toEqual([
    { name: "a", version: "1.0.0" },
    { name: "b", version: "1.0.0" },
  ]);
  expect(installedWith({ packages }, ["alias"])).toEqual([
    { name: "@scope/real", version: "4.0.0" },
    { name: "b", version: "2.0.0" },
  ]);
});
