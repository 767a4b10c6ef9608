import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { root } from "../dist/places.ts";
import { publications } from "../dist/publications.ts";

type Step = { readonly uses?: string; readonly run?: string };
type Workflow = {
  readonly jobs: Readonly<Record<string, { readonly uses?: string; readonly steps?: readonly Step[] }>>;
};

const read = (path: string) => readFileSync(join(root, path), "utf8");
const folder = ".github/workflows";
const stepsOf = (name: string) =>
  Object.values((parse(read(`${folder}/${name}`)) as Workflow).jobs).flatMap(({ steps = [] }) => steps);
const steps = readdirSync(join(root, folder)).flatMap(stepsOf);

it("workflows run scripts that package.json has", () => {
  const used = steps.flatMap(({ run = "" }) => [...run.matchAll(/\bnpm (?:run )?([\w:]+)/g)].map(([, name]) => name));
  const scripts = Object.keys(JSON.parse(read("package.json")).scripts);
  expect([...new Set(used)].filter((name) => !scripts.includes(name ?? ""))).toEqual([]);
  expect(used).toEqual(expect.arrayContaining(["check", "lint", "test", "test:nightly", "release"]));
});

it("workflows name the actions of others by their commit, because a tag can be moved", () => {
  const uses = steps.flatMap((step) => step.uses ?? []);
  expect(uses.filter((one) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(one))).toEqual([]);
  expect(uses.length).toBeGreaterThan(10);
});

it.each(publications)("the release workflow publishes the $what", ({ by }) => {
  const texts = stepsOf("release.yaml").map(({ run = "", uses = "" }) => run + uses);
  expect(texts.some((text) => text.includes(by))).toBe(true);
});

it("the devcontainer and the workflows have the Node that the sources run on", () => {
  const major = JSON.parse(read("package.json")).devDependencies.node.match(/\d+/)[0];
  expect(read(".nvmrc")).toBe(`${major}\n`);
  expect(JSON.parse(read(".devcontainer/devcontainer.json")).image).toMatch(new RegExp(`-node:${major}$`));
  expect(read(`${folder}/nightly.yaml`)).toContain(`image: node:${major}-`);
  expect(read(`${folder}/release.yaml`)).toContain(`node-version: ${major}\n`);
});
