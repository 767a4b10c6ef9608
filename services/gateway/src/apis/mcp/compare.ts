import { z } from "zod";
import { comparisonJson } from "../tapedeck/compare/comparison-json.ts";
import { Answer, tokensField } from "./answer.ts";
import { addDifferences, addSide } from "./comparison-text.ts";
import { namedSide, whatForms } from "./named-side.ts";
import { tool } from "./tool.ts";

export const compare = tool({
  name: "compare",
  title: "What differs?",
  description:
    "What differs between two loops, sessions or sources (whose newest finished loop is meant): commands, versions, settings, files, resources, durations.",
  input: z.strictObject({
    left: z.string().describe(`${whatForms}. After a source or session, \`@\` and a position or time may follow.`),
    right: z.string().optional().describe("The other side, likewise. Default: the last good one before the left."),
    tokens: tokensField,
  }),
  async answer({ left, right, tokens }, call) {
    const sides = {
      left: await namedSide(call, left, undefined),
      right: right === undefined ? undefined : await namedSide(call, right, undefined),
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
