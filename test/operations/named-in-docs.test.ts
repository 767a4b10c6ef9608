import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { auditActions } from "@tapedeck/shared/audit/entry";
import { kinds } from "@tapedeck/shared/events/kinds";
import { beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { readAlerts } from "./alerts.ts";
import { namesOf, servedMetrics } from "./served-metrics.ts";

// What pages and configuration name must exist in today's code. Decisions and the changelog may name what is gone.

const root = join(import.meta.dirname, "../..");

type File = { readonly path: string; readonly text: string };

async function read(...patterns: readonly string[]): Promise<readonly File[]> {
  const paths = (await Array.fromAsync(glob(patterns, { cwd: root }))).filter((path) => !path.includes("node_modules"));
  return await Promise.all(
    paths.toSorted().map(async (path) => ({ path, text: await readFile(join(root, path), "utf8") })),
  );
}

let pages: readonly File[];
/** What operators configure Tapedeck and what is beside it with. */
let configuration: readonly File[];
let settings: string;
beforeAll(async () => {
  pages = await read("docs/*.md", "README.md", "CONTRIBUTING.md", "packages/*/README.md");
  configuration = await read("infra/**/*.{yaml,yml,conf,cfg,env,sh,service,tpl,txt,json,plist}", "infra/debian/*");
  settings = pages.find(({ path }) => path === "docs/settings.md")?.text ?? "";
});

/** Each match with its file, but for those that are known. */
function unknown(files: readonly File[], pattern: RegExp, isKnown: (name: string) => boolean): readonly string[] {
  const found = files.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map(([, name = ""]) => ({ path, name })).filter(({ name }) => !isKnown(name)),
  );
  return [...new Set(found.map(({ path, name }) => `${path}: ${name}`))];
}

it("every metric that is named is served", async () => {
  const served = new Set(namesOf(await servedMetrics()));
  const pattern = /\b(tapedeck_(?:ready|(?:ingest|query|gateway|certificate)_[a-z_]+[a-z]))\b/g;
  const isServed = (name: string) => served.has(name) || served.has(name.replace(/_(bucket|sum|count)$/, ""));
  expect(unknown([...pages, ...configuration], pattern, isServed)).toEqual([]);
  const named = new Set(pages.flatMap(({ text }) => [...text.matchAll(pattern)].map(([, name]) => name)));
  expect(named.size).toBeGreaterThan(25);
});

it("every alert that is named is there", async () => {
  const alerts = new Set((await readAlerts()).map(({ alert }) => alert));
  const isKnown = (name: string) => alerts.has(name) || name === "TapedeckError";
  expect(unknown([...pages, ...configuration], /\b(Tapedeck[A-Z]\w+)\b/g, isKnown)).toEqual([]);
});

/** settings.md is what the code says: packages/cli/src/reference/settings-page.test.ts compares them. */
function settingKeys(): readonly string[] {
  return [...settings.matchAll(/^\* `([a-z][\w.]*)` `TAPEDECK_/gm)].map(([, key = ""]) => key);
}

/** The paths of all values, and of all maps around them. */
function pathsIn(value: unknown, before = ""): readonly string[] {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => [`${before}${key}`, ...pathsIn(inner, `${before}${key}.`)]);
}

it("every setting, and every value of the chart, that is named is there", async () => {
  const keys = settingKeys();
  expect(keys.length).toBeGreaterThan(80);
  const values = pathsIn(parse(await readFile(join(root, "infra/helm/tapedeck/values.yaml"), "utf8")));
  const known = new Set<string>([...keys.flatMap(withParents), ...values, ...kinds, ...auditActions]);
  const roots = [...new Set([...keys, ...values].filter((key) => key.includes(".")).map(firstOf))];
  const named = new RegExp(`\`((?:${roots.join("|")})(?:\\.[a-zA-Z]\\w*)+)(?:\\.\\*)?(?:: [^\`]*)?\``, "g");
  const isFile = (name: string) => /\.(env|ts|yaml|proto)$/.test(name);
  expect(unknown(pages, named, (name) => known.has(name) || isFile(name))).toEqual([]);
  const blocks = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, block = ""]) => ({ path, paths: pathsIn(parse(block)) })),
  );
  expect(blocks.length).toBeGreaterThan(3);
  const ofTapedeck = blocks.filter(({ paths }) => !paths.includes("services")); // a Compose file has other keys
  // The values have a part of NATS' own chart.
  const isElsewhere = (key: string) => known.has(key.replace(/^settings\./, "")) || key.startsWith("nats.config.");
  expect(
    ofTapedeck.flatMap(({ path, paths }) => paths.filter((key) => !isElsewhere(key)).map((key) => `${path}: ${key}`)),
  ).toEqual([]);
});

function withParents(key: string): readonly string[] {
  const parts = key.split(".");
  return parts.map((_, index) => parts.slice(0, index + 1).join("."));
}

function firstOf(key: string): string {
  return key.split(".")[0] ?? "";
}

it("every variable that is named is read somewhere", async () => {
  const inSettings = new Set([...settings.matchAll(/`(TAPEDECK_[A-Z0-9_]+)`/g)].map(([, name]) => name));
  const textOf = (files: readonly File[]) => files.map(({ text }) => text).join("\n");
  const sources = textOf(await read("{packages,services,infra,test}/**/*.{ts,mjs}"));
  const others = textOf(configuration);
  /** Also as a stream or bucket of NATS: these names look the same. */
  const isRead = (name: string) =>
    inSettings.has(name) ||
    new RegExp(`env\\.${name}\\b|= "${name}"`).test(sources) ||
    new RegExp(`\\$\\{?${name}\\b|defined\\(${name}\\)`).test(others);
  expect(unknown([...pages, ...configuration], /\b(TAPEDECK_[A-Z0-9_]*[A-Z0-9])\b/g, isRead)).toEqual([]);
});
