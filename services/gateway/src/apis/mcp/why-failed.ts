import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { comparisonJson } from "../tapedeck/compare/comparison-json.ts";
import { Answer, loopName, sourceText, tokensField } from "./answer.ts";
import { addDifferences, addSide, addUnread, headOf } from "./comparison-text.ts";
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
      "`alice/shop`, or with `/upstream`: its newest failed loop, or step outside of loops. Default: what failed last anywhere.",
    ),
    at: atField,
    tokens: tokensField,
  }),
  async answer({ tokens, at, ...subject }, call) {
    const left = await namedSide(call, { ...subject, at });
    if (left === undefined) return nothingFailed(call, tokens);
    const comparison = comparisonJson(await call.apis.tapedeck.compare(call.context, { left, at }));
    const { position } = comparison;
    const again = call.again({ source: undefined, loop: undefined, ...nameOf(comparison.left, subject), at: position });
    return whyText(call, comparison, tokens, { position, again: `${again}${laterOutput(comparison)}` });
  },
});

/** The name that means the side, whatever comes later. */
function nameOf(
  side: AnswerOf<"ComparedSide">,
  { source, session }: { readonly source?: string | undefined; readonly session?: string | undefined },
) {
  if (side.unit === "loop") return { session: undefined, loop: loopName(side) };
  if (session !== undefined) return {};
  const isFound = side.unit === "session" && source === undefined;
  return isFound ? { session: side.session } : { source: sourceText(side.source) };
}

/** Causes are concluded from output, which may be recorded later. */
export function laterOutput({ left, right }: AnswerOf<"Comparison">): string {
  const hasCause = [left, right].some((side) => side?.failure != null);
  return hasCause ? " (a cause may be clearer then: more of the output may have been recorded)" : "";
}

type Opening = {
  readonly position: string;
  readonly again: string;
  /** What is said first. */
  readonly how?: string | undefined;
};

/** Why the left side failed, if it has. */
export function whyText(
  { page }: McpCall,
  comparison: AnswerOf<"Comparison">,
  tokens: number,
  { how, ...foot }: Opening,
): string {
  const answer = new Answer(tokens);
  const { left } = comparison;
  if (how !== undefined) answer.add(how);
  if (left.failure === null && left.outcome !== "failed") {
    answer.add("Nothing failed in this:", headOf(left));
    addUnread(answer, left);
  } else {
    addSide(answer, left);
    answer.add("");
    addDifferences(answer, comparison);
  }
  const isLoop = left.unit === "loop";
  const path = isLoop
    ? `/loops/${loopName(left)}`
    : `/sessions/${left.session}?at=${left.failure?.position ?? left.position}`;
  return answer.end({ ...foot, page: { address: `${page}${path}`, isNow: isLoop } });
}

async function nothingFailed({ apis, context }: McpCall, tokens: number): Promise<string> {
  const answer = new Answer(tokens);
  answer.add("Nothing has failed in this workspace: no loop, no command, and no step of a Skaffold without loops.");
  const { position } = await apis.tapedeck.lists.sources(context, { filter: {}, limit: 1 });
  return answer.end({ position, again: "what failed last anywhere is always of now." });
}
