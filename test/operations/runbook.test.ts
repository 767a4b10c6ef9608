import { readFile } from "node:fs/promises";
import { join } from "node:path";
import Slugger from "github-slugger";
import { lexer, type Tokens } from "marked";
import { beforeAll, expect, it } from "vitest";
import { readAlerts } from "./alerts.ts";
import { procedures } from "./procedures.ts";

const root = join(import.meta.dirname, "../..");

type Section = { readonly title: string; readonly chapter: string; readonly text: string };

let sections: readonly Section[];
let page: string;

beforeAll(async () => {
  page = await readFile(join(root, "docs/operations.md"), "utf8");
  sections = sectionsOf(page);
});

/** Returns the sections of a page with the text directly in each. */
function sectionsOf(text: string): readonly Section[] {
  const found: { title: string; chapter: string; text: string }[] = [];
  let chapter = "";
  for (const token of lexer(text)) {
    const last = found.at(-1);
    if (token.type === "heading") {
      const { depth, text: title } = token as Tokens.Heading;
      if (depth === 2) chapter = title;
      found.push({ title, chapter, text: "" });
    } else if (last !== undefined) last.text += token.raw;
  }
  return found;
}

it("every procedure has a test that exists", async () => {
  const titled = sections.filter(({ chapter }) => chapter !== "");
  // A chapter whose sections are the procedures has a sentence or two before them.
  const isParent = ({ title }: Section) => titled.some((one) => one.chapter === title && one.title !== title);
  const untested = titled.filter((section) => !isParent(section) && procedures[section.title] === undefined);
  expect(untested.map(({ title }) => title)).toEqual([]);
  const titles = sections.map(({ title }) => title);
  expect(Object.keys(procedures).filter((title) => !titles.includes(title))).toEqual([]);
  const named = Object.values(procedures).flat();
  for (const [path, title] of named) {
    const source = await readFile(join(root, path), "utf8").catch(() => "");
    const isLeftOut = [".skip", ".todo"].some((how) => source.includes(`${how}("${title}"`));
    const isThere = source.includes(`"${title}"`) && !isLeftOut;
    expect({ path, title, isThere }).toEqual({ path, title, isThere: true });
  }
  expect(named.length).toBeGreaterThan(15);
});

it("every alert has a section of its name in the runbook, and every section an alert", async () => {
  const alerts = await readAlerts();
  const titles = sections.flatMap(({ chapter, title }) => (chapter === "Runbook" && title !== chapter ? [title] : []));
  expect(titles.toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
  for (const { alert, annotations } of alerts) {
    expect(annotations.runbook_url).toBe(`docs/operations.md#${new Slugger().slug(alert)}`);
  }
});

it("every metric that Tapedeck defines is explained", async () => {
  const sources = await Promise.all(
    [
      ...["services/ingest/src/metrics.ts", "services/query/src/metrics.ts", "services/gateway/src/metrics.ts"],
      ...["services/query/src/totals/total-metrics.ts", "services/gateway/src/sinks/sink-metrics.ts"],
      ...["packages/shared/src/service/health.ts", "packages/shared/src/service/tls/certificate.ts"],
    ].map((path) => readFile(join(root, path), "utf8")),
  );
  const names = sources.flatMap((text) => [...text.matchAll(/"(tapedeck_\w+)"/g)].map(([, name = ""]) => name));
  expect(names.length).toBeGreaterThan(25);
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
