import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { comparisonJson } from "../tapedeck/compare/comparison-json.ts";
import { Answer, loopName, tokensField } from "./answer.ts";
import { addDifferences, addSide, headOf } from "./comparison-text.ts";
import { atField, namedSide, subjectFields } from "./named-side.ts";
import { type McpCall, tool } from "./tool.ts";

export const whyFailed = tool({
  name: "why_failed",
  title: "Why did it fail?",
  description:
    "Why a dev loop, command or session failed: what failed first, its cause and output, and what differs from the last good one. " +
    "Ask this first when something is broken.",
  input: z.strictObject({
    ...subjectFields,
    source: subjectFields.source.describe(
      "`alice/shop`, or with `/upstream`: its newest failed loop. Default: what failed last anywhere.",
    ),
    at: atField,
    tokens: tokensField,
  }),
  async answer({ tokens, ...subject }, call) {
    const left = await namedSide(call, subject);
    if (left === undefined) return nothingFailed(call, tokens);
    return whyText(call, comparisonJson(await call.apis.tapedeck.compare(call.context, { left })), tokens);
  },
});

type Opening = {
  readonly position?: string;
  readonly again?: string;
  /** What is said first. */
  readonly how?: string | undefined;
};

/** Why the left side failed, if it has. */
export function whyText(
  { page }: McpCall,
  comparison: AnswerOf<"Comparison">,
  tokens: number,
  { how, ...foot }: Opening = {},
): string {
  const answer = new Answer(tokens);
  const { left } = comparison;
  if (how !== undefined) answer.add(how);
  if (left.failure === null && left.outcome !== "failed") answer.add("Nothing failed in this:", headOf(left));
  else {
    addSide(answer, left);
    answer.add("");
    addDifferences(answer, comparison);
  }
  const name = left.unit === "loop" ? loopName(left) : left.session;
  const again =
    left.unit === "loop" ? `\`loop\` ${name} answers the same` : `\`session\` ${name} \`at\` it answers the same`;
  return answer.end({ position: left.position, again, ...foot, page: `${page}${pathOf(left)}` });
}

function pathOf(side: AnswerOf<"ComparedSide">): string {
  if (side.unit === "loop") return `/loops/${loopName(side)}`;
  return `/sessions/${side.session}?at=${side.failure?.position ?? side.position}`;
}

async function nothingFailed({ apis, context, page }: McpCall, tokens: number): Promise<string> {
  const answer = new Answer(tokens);
  answer.add("No loop and no command has failed in this workspace.");
  const { position } = await apis.tapedeck.lists.sources(context, { filter: {}, limit: 1 });
  return answer.end({ position, page: `${page}/` });
}
