import { describe, expect, it } from "vitest";
import { maskText } from "./mask-text.ts";
import type { Case } from "./testing/corpus.ts";
import { plainTexts, type Random, secretTexts } from "./testing/generated-texts.ts";

/** Numbers that are the same for a seed. */
function randomOf(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

function runs(flags: readonly boolean[]): [number, number][] {
  const found: [number, number][] = [];
  for (const [at, flag] of flags.entries()) {
    const last = found.at(-1);
    if (!flag) continue;
    if (last?.[1] === at) last[1] = at + 1;
    else found.push([at, at + 1]);
  }
  return found;
}

/** All values in the generated texts are ASCII, so the masked text has the same length. */
function judge({ text }: Case) {
  const secret: boolean[] = [];
  let isInside = false;
  let raw = "";
  for (const character of text.split("")) {
    if (/[«»]/.test(character)) isInside = character === "«";
    else {
      raw += character;
      secret.push(isInside);
    }
  }
  const masked = maskText(raw).text;
  const hidden = raw.split("").map((character, at) => masked.charAt(at) === "*" && character !== "*");
  const secrets = runs(secret);
  const spans = runs(hidden);
  const found = secrets.filter(([from, to]) =>
    hidden.slice(from, to).every((isHidden, at) => isHidden || raw.charAt(from + at) === "*"),
  ).length;
  const right = spans.filter(([from, to]) => secret.slice(from, to).every(Boolean)).length;
  return { secrets: secrets.length, found, masked: spans.length, right };
}

describe("generated texts", () => {
  // Other seeds give other values, places and neighbours, so no rule can know a value.
  it.each([1, 20_260_101])("are masked with enough recall and precision, seed %d", (seed) => {
    const texts = [...secretTexts(randomOf(seed), 3_000), ...plainTexts(randomOf(seed + 1), 1_000)];
    const sum = { secrets: 0, found: 0, masked: 0, right: 0 };
    const wrong: string[] = [];
    for (const one of texts) {
      const judged = judge(one);
      for (const key of ["secrets", "found", "masked", "right"] as const) sum[key] += judged[key];
      if (judged.found < judged.secrets || judged.right < judged.masked) wrong.push(one.text);
    }
    const recall = (100 * sum.found) / sum.secrets;
    const precision = (100 * sum.right) / sum.masked;
    console.info(
      `masking of generated texts: recall ${recall.toFixed(1)} % of ${sum.secrets}, precision ${precision.toFixed(1)} % of ${sum.masked}`,
    );
    expect(recall, wrong.slice(0, 20).join("\n")).toBeGreaterThanOrEqual(98);
    expect(precision, wrong.slice(0, 20).join("\n")).toBeGreaterThanOrEqual(99);
  });
});
