import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { comparisonJson } from "../tapedeck/compare/comparison-json.ts";
import { Answer, loopName, sourceText, textField, tokensField } from "./answer.ts";
import { addDifferences, addSide } from "./comparison-text.ts";
import { atField, sideOf } from "./named-side.ts";
import { tool } from "./tool.ts";
import { laterOutput } from "./why-failed.ts";

const forms =
  "A source (`alice/shop`), a loop (`<session>.<runner>.<loop>`, or `alice/shop#4` for the newest loop 4) or a session's id";

export const compare = tool({
  name: "compare",
  title: "What differs?",
  description:
    "What differs between two loops, sessions or sources (whose newest finished loop is meant): commands, versions, settings, files, resources, durations.",
  input: z.strictObject({
    left: textField.describe(`${forms}. After a source or session, \`@\` and a position or time may follow.`),
    right: textField.optional().describe("The other side, likewise. Default: the last good one before the left."),
    at: atField,
    tokens: tokensField,
  }),
  async answer({ left, right, at, tokens }, call) {
    const sides = {
      left: await sideOf(call, left, at),
      right: right === undefined ? undefined : await sideOf(call, right, at),
      at,
    };
    const comparison = comparisonJson(await call.apis.tapedeck.compare(call.context, sides));
    const answer = new Answer(tokens);
    addSide(answer, comparison.left);
    if (comparison.right !== null) addSide(answer, comparison.right);
    answer.add("");
    addDifferences(answer, comparison);
    const exact = comparison.right === null ? [comparison.left] : [comparison.left, comparison.right];
    const query = new URLSearchParams(
      exact.map((side, index): [string, string] => [index === 0 ? "left" : "right", exactName(side)]),
    );
    const { position } = comparison;
    const named = {
      left: fullyNamed(sides.left, comparison.left),
      right: sides.right && fullyNamed(sides.right, comparison.right ?? comparison.left),
    };
    return answer.end({
      position,
      again: `${call.again({ ...named, at: position })}${laterOutput(comparison)}`,
      page: { address: `${call.page}/compare?${query}`, isNow: exact.some(({ unit }) => unit === "loop") },
    });
  },
});

/** The caller's name of a side, with the upstream of a source: the project may get another one. */
function fullyNamed(name: string, { source }: AnswerOf<"ComparedSide">): string {
  return name.includes("/") ? name.replace(/^[^@]*/, sourceText(source)) : name;
}

/** A side that stays the same when newer loops come. */
function exactName(side: AnswerOf<"ComparedSide">): string {
  return side.unit === "loop" ? loopName(side) : `${side.session}@${side.position}`;
}
