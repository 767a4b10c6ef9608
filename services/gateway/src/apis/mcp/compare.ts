import { z } from "zod";
import { comparisonJson } from "../tapedeck/compare/comparison-json.ts";
import { Answer, textField, tokensField } from "./answer.ts";
import { addDifferences, addSide } from "./comparison-text.ts";
import { sideOf } from "./named-side.ts";
import { tool } from "./tool.ts";

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
    tokens: tokensField,
  }),
  async answer({ left, right, tokens }, call) {
    const sides = {
      left: await sideOf(call, left),
      right: right === undefined ? undefined : await sideOf(call, right),
    };
    const comparison = comparisonJson(await call.apis.tapedeck.compare(call.context, sides));
    const answer = new Answer(tokens);
    addSide(answer, comparison.left);
    if (comparison.right !== null) addSide(answer, comparison.right);
    answer.add("");
    addDifferences(answer, comparison);
    const query = new URLSearchParams({ left, ...(right !== undefined && { right }) });
    const [leftEnd, rightEnd] = [comparison.left.position, comparison.right?.position];
    const again = `the left side is as of it${rightEnd === undefined ? "" : `, the right one as of ${rightEnd}`}: \`@\` these, a source or session answers the same`;
    return answer.end({ position: leftEnd, page: `${call.page}/compare?${query}`, again });
  },
});
