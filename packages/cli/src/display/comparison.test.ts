import { stripVTControlCharacters } from "node:util";
import type { ComparedSide, Comparison } from "@tapedeck/client";
import { expect, it } from "vitest";
import { comparisonText } from "./comparison.ts";

const left: ComparedSide = {
  name: "loop 14",
  source: "acme/bob/shop/skaffold",
  upstream: "skaffold",
  session: "01B",
  unit: "loop",
  runner: 1,
  loop: 14,
  subject: "",
  outcome: "failed",
  startedAt: new Date().toISOString(),
  endedAt: null,
  durationMs: 2_300,
  startPosition: "383600-t3k9x2",
  position: "383700-t3k9x2",
  failure: {
    phase: "deploy",
    subject: "",
    errorCode: "DEPLOY_KUBECTL_USER_ERR",
    error: "kubectl apply: exit status 1",
    cause: {
      text: "error: no matches for kind",
      reason: "the cluster refuses the manifest",
      group: "",
      file: "k8s/web.yaml",
      line: 3,
      advice: "Check the manifest",
      phase: "",
      subject: "",
      tries: 1,
    },
    suggestions: ["Check the manifest"],
    position: "383650-t3k9x2",
    tries: 1,
    output: [
      { text: "applying", position: "383640-t3k9x2", isCause: false },
      { text: "\u001b[31merror: no matches\u001b[0m for kind\r", position: "383640-t3k9x2", isCause: true },
    ],
  },
  unread: [],
};
const right: ComparedSide = { ...left, name: "loop 11", loop: 11, outcome: "succeeded", failure: null };
const difference = (index: number): Comparison["differences"][number] => ({
  kind: "label",
  subject: `l${index}`,
  text: `l${index}: a; b in loop 11`,
  left: "a",
  right: "b",
  evidence: [
    { side: "left", session: "01B", position: "383600-t3k9x2", text: "a" },
    { side: "right", session: "01B", position: "383500-t3k9x2", text: "b" },
  ],
});
const lines = (comparison: Comparison) => stripVTControlCharacters(comparisonText(comparison)).split("\n");

it("begins with what failed, and numbers what differs with where it was recorded", () => {
  const shown = lines({
    left,
    right,
    differences: [difference(1)],
    equal: 24,
    same: [],
    omitted: 0,
    position: "383700-t3k9x2",
  });
  expect(shown.map((line) => line.replace(/(?:now|\d+ s ago)$/, "now"))).toEqual([
    "bob/shop  loop 14  failed after 2.3 s, now",
    "  deploy: error: no matches for kind  DEPLOY_KUBECTL_USER_ERR",
    "  the cluster refuses the manifest in k8s/web.yaml:3",
    "    applying",
    "  > error: no matches for kind",
    "  Suggestion: Check the manifest",
    "beside",
    "bob/shop  loop 11  succeeded after 2.3 s, now",
    "",
    " 1  l1: a; b in loop 11",
    "    label, recorded at 383600-t3k9x2 beside 383500-t3k9x2",
    "    24 facts are equal",
  ]);
});

it("says on which side a difference was recorded, if only one has it", () => {
  const { evidence } = difference(1);
  const line = (some: typeof evidence) => {
    const differences = [{ ...difference(1), evidence: some }];
    return lines({ left, right, differences, equal: 3, same: [], omitted: 0, position: "" }).at(-2);
  };
  const ofLeft = evidence.filter(({ side }) => side === "left");
  expect(line(evidence.filter(({ side }) => side === "right"))).toBe(
    "    label, recorded on the other side at 383500-t3k9x2",
  );
  expect(line(ofLeft.flatMap((one) => [one, { ...one, position: "383601-t3k9x2" }]))).toBe(
    "    label, recorded at 383600-t3k9x2, 383601-t3k9x2",
  );
  expect(line([])).toBe("    label");
});

it("names changed files in one line", () => {
  const file = (index: number) => ({
    ...difference(index),
    kind: "file",
    subject: `src/${index}.ts`,
    left: "modified",
  });
  const differences = [file(1), difference(1), ...Array.from({ length: 9 }, (_, index) => file(index + 2))];
  const shown = lines({ left, right, differences, equal: 0, same: [], omitted: 0, position: "" }).filter((line) =>
    /^ ?\d /.test(line),
  );
  const named = Array.from({ length: 8 }, (_, index) => `src/${index + 1}.ts modified`).join(", ");
  expect(shown).toEqual([` 1  changed files: ${named} and 2 more`, " 2  l1: a; b in loop 11"]);
});

it("says what a number of an error is", () => {
  const failure = left.failure && { ...left.failure, phase: "command", subject: "up", errorCode: "2" };
  const shown = lines({
    left: { ...left, failure },
    right,
    differences: [],
    equal: 0,
    same: [],
    omitted: 0,
    position: "",
  });
  expect(shown[1]).toBe("  command up: error: no matches for kind  exit code 2");
});

it("shows the first of many, and says what is missing", () => {
  const differences = Array.from({ length: 13 }, (_, index) => difference(index));
  expect(lines({ left, right, differences, equal: 0, same: [], omitted: 0, position: "" })).toContain(
    "    and 3 more (--json shows all)",
  );
  expect(lines({ left, right: null, differences: [], equal: 0, same: [], omitted: 0, position: "" }).at(-1)).toBe(
    "nothing to compare it with: no loop before it was good",
  );
});

it("says what was not compared", () => {
  const unread = ["Only its newest 500 steps were compared."];
  const differences = Array.from({ length: 13 }, (_, index) => difference(index));
  const shown = lines({ left, right: { ...right, unread }, differences, equal: 0, same: [], omitted: 7, position: "" });
  expect(shown.slice(shown.indexOf("beside") + 2)[0]).toBe("  Only its newest 500 steps were compared.");
  expect(shown).toContain("    and 10 more (--json shows the first 13)");
});

it("sends no control character of what was recorded to the terminal", () => {
  const toClipboard = "\u001b]52;c;eA==\u0007";
  const failure = left.failure && { ...left.failure, subject: `web${toClipboard}`, errorCode: `X${toClipboard}` };
  const shown = comparisonText({
    left: { ...left, failure },
    right,
    differences: [],
    equal: 0,
    same: [],
    omitted: 0,
    position: "",
  });
  expect(shown).toContain("deploy web");
  expect(shown).not.toContain("\u001b]");
});
