import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Explanation, explain, type StepOutput } from "./explain.ts";
import { linesOf } from "./lines.ts";

/** What a person reads from an output. Without a cause, nothing failed. `accept`, `…Accept`: as good. */
type Label = {
  readonly step: string;
  readonly summary: string;
  readonly cause: string | null;
  readonly accept?: readonly string[];
  readonly reason: string | null;
  readonly reasonAccept?: readonly string[] | null;
  readonly file: string | null;
  readonly line: number | null;
  readonly placeAccept?: readonly (readonly [string | null, number | null])[] | null;
};

type Case = { readonly name: string; readonly output: string; readonly label: Label };

const folder = join(import.meta.dirname, "../cases");
const cases: readonly Case[] = readdirSync(folder).map((name) => ({
  name,
  output: readFileSync(join(folder, name, "output.txt"), "utf8"),
  label: JSON.parse(readFileSync(join(folder, name, "case.json"), "utf8")),
}));
/** A line of the output without its frame. One that quotes the output of a command stands for each line of it. */
const forms = (text: string) => linesOf(text).map(({ bare }) => bare);

function isCause(explanation: Explanation | undefined, { cause, accept = [] }: Label): boolean {
  const found = forms(explanation?.cause ?? "").join("\n");
  return [cause ?? "", ...accept].some(
    (text) => text.trim() === explanation?.cause || forms(text).join("\n") === found || forms(text).includes(found),
  );
}

function isReason(explanation: Explanation | undefined, { reason, reasonAccept }: Label): boolean {
  return [reason, ...(reasonAccept ?? [])].includes(explanation?.reason ?? null);
}

function isPlace(explanation: Explanation | undefined, { file, line, placeAccept }: Label): boolean {
  return [[file, line], ...(placeAccept ?? [])].some(
    ([expectedFile, expectedLine]) =>
      expectedFile === (explanation?.file ?? null) && expectedLine === (explanation?.line ?? null),
  );
}

type Figure = { readonly hits: number; readonly of: number; readonly misses: readonly string[] };

function figure(among: readonly Case[], isHit: (one: Case) => boolean, found: (one: Case) => string): Figure {
  const missed = among.filter((one) => !isHit(one));
  return {
    hits: among.length - missed.length,
    of: among.length,
    misses: missed.map((one) => `${one.name}: ${found(one)}`),
  };
}

/** Some steps print nothing that says why they failed: their summary does. */
const saysWhy = ({ output, label }: Case) =>
  linesOf(output).some(({ text }) => text !== "" && isCause({ ...nothing, cause: text.trim() }, label));

const nothing: Explanation = { cause: "", reason: "", file: null, line: null, advice: null };

function measured(among: readonly Case[], stepOf: (one: Case) => StepOutput): Readonly<Record<string, Figure>> {
  const failures = among.filter(({ label }) => label.cause !== null);
  const successes = among.filter(({ label }) => label.cause === null);
  const explanations = new Map(among.map((one) => [one, explain(stepOf(one))]));
  const of = (one: Case) => explanations.get(one);
  return {
    causes: figure(
      failures,
      (one) => isCause(of(one), one.label),
      (one) => of(one)?.cause ?? "nothing",
    ),
    reasons: figure(
      failures,
      (one) => isReason(of(one), one.label),
      (one) => of(one)?.reason ?? "nothing",
    ),
    places: figure(
      failures.filter(({ label }) => label.file !== null),
      (one) => isPlace(of(one), one.label),
      (one) => `${of(one)?.file}:${of(one)?.line}`,
    ),
    "no place where none is named": figure(
      failures.filter(({ label }) => label.file === null),
      (one) => isPlace(of(one), one.label),
      (one) => `${of(one)?.file}:${of(one)?.line}`,
    ),
    silent: figure(
      successes,
      (one) => of(one) === undefined,
      (one) => of(one)?.cause ?? "",
    ),
  };
}

const goals = { causes: 0.9, reasons: 0.85, places: 0.8, "no place where none is named": 0.8, silent: 1 };

it.each([
  {
    of: "the output alone",
    among: cases.filter((one) => one.label.cause === null || saysWhy(one)),
    stepOf: ({ output }: Case) => ({ output }),
  },
  {
    of: "the output, its summary and the step",
    among: cases,
    stepOf: ({ output, label }: Case) => ({ output, summary: label.summary, step: label.step }),
  },
])("finds the causes of labelled failures in $of", ({ of, among, stepOf }) => {
  const figures = measured(among, stepOf);
  const lines = Object.entries(figures).flatMap(([name, { hits, of: total, misses }]) => [
    `${name}: ${hits} of ${total} (${((100 * hits) / total).toFixed(1)} %)`,
    ...misses.map((miss) => `  ${miss}`),
  ]);
  console.info(`Read from ${of}:\n${lines.join("\n")}`);
  expect(among.length).toBeGreaterThanOrEqual(60);
  for (const [name, goal] of Object.entries(goals)) {
    const { hits = 0, of: total = 1 } = figures[name] ?? {};
    expect(hits / total, name).toBeGreaterThanOrEqual(goal);
  }
});
