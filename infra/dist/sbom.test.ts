import { expect, test } from "vitest";
import { type Bom, installedWith, restricted } from "./sbom.ts";

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

test("a package's bill has what is in it, and nothing of the checkout beside", () => {
  const bom = restricted(all, { name: "@t/p", version: "3.0.0", wanted: new Set(["a@1.0.0", "b@1.0.0"]) });
  expect(bom.components.map((one) => one["bom-ref"])).toEqual(["a@1.0.0", "b@1.0.0"]);
  expect(bom.dependencies).toEqual([
    { ref: "@t/p@3.0.0", dependsOn: ["a@1.0.0", "b@1.0.0"] },
    { ref: "a@1.0.0", dependsOn: ["b@1.0.0"] },
  ]);
  expect(bom.metadata).toMatchObject({ component: { "bom-ref": "@t/p@3.0.0", purl: "pkg:npm/%40t/p@3.0.0" } });
});

test("a package that npm does not know is an error and not an omission", () => {
  expect(() => restricted(all, { name: "p", version: "1.0.0", wanted: new Set(["c@1.0.0"]) })).toThrow("c@1.0.0");
});

test("a dependency is found as Node finds it: the nearest, under its own name", () => {
  const packages = {
    "": {},
    "node_modules/a": { version: "1.0.0", dependencies: { b: "^1" } },
    "node_modules/a/node_modules/b": { version: "1.0.0", dependencies: { a: "*" } },
    "node_modules/b": { version: "2.0.0" },
    "node_modules/alias": { name: "@scope/real", version: "4.0.0", dependencies: { b: "*" } },
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
