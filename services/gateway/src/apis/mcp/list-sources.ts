import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { listsJson } from "../tapedeck/lists.ts";
import { Answer, counted, durationText, loopName, quoted, sourceText, textField, tokensField } from "./answer.ts";
import { atField } from "./named-side.ts";
import { tool } from "./tool.ts";

export const listSources = tool({
  name: "list_sources",
  title: "What is recorded?",
  description:
    "The recorded sources, each a developer's tool (`alice/shop/skaffold`), with its status and how its newest loop or command went.",
  input: z.strictObject({
    developer: textField.optional(),
    project: textField.optional(),
    upstream: z.enum(["skaffold", "rkt", "vagrant"]).optional(),
    at: atField,
    page: z.string().optional().describe("The `page` that an earlier answer names."),
    tokens: tokensField,
  }),
  async answer({ developer, project, upstream, at, page, tokens }, { apis, context, page: base }) {
    const many = (value: string | undefined) => (value === undefined ? undefined : [value]);
    const filter = { developer: many(developer), project: many(project), upstream: many(upstream) };
    const asOf = at === undefined ? {} : { at };
    const lists = listsJson(apis.tapedeck.lists);
    const found = await lists.sources(context, { ...filter, ...asOf, limit: pageSize, ...(page && { page }) });
    const sources = found.items as AnswerOf<"Source">[];
    const newest = await newestOf(sources);
    const answer = new Answer(tokens);
    if (sources.length === 0) answer.add(`No source is recorded${at === undefined ? "" : " up to then"} that matches.`);
    const shown = answer.section({
      entries: sources.map((source) => sourceLine(source, newest.get(source.source))),
      rest: (count) => `${counted(count, "more source")}. Ask with more \`tokens\`, a \`developer\` or a \`project\`.`,
      isMain: true,
    });
    if (shown === sources.length && found.nextPage !== undefined)
      answer.leaveOut(`further sources. Ask with page ${JSON.stringify(found.nextPage)}.`);
    return answer.end({ position: found.position, page: `${base}/` });

    async function newestOf(of: readonly AnswerOf<"Source">[]) {
      if (of.length === 0) return new Map<string, AnswerOf<"Operation">>();
      const request = {
        source: of.map(({ source }) => source),
        kind: ["loop" as const, "command" as const],
        per_source: 1,
      };
      // Both lists are as of the same position.
      const { items } = await lists.operations(context, { ...request, limit: pageSize, at: at ?? found.position });
      return new Map((items as AnswerOf<"Operation">[]).map((operation) => [operation.source, operation]));
    }
  },
});

/** A filter takes as many sources. */
const pageSize = 100;

function sourceLine(source: AnswerOf<"Source">, newest: AnswerOf<"Operation"> | undefined): string {
  const { status, currentSession, notHeardSince, gaps } = source;
  const parts = [
    `${sourceText(source.source)}: ${status}`,
    ...(newest === undefined ? [] : [newestText(newest)]),
    ...(notHeardSince === null ? [] : [`not heard since ${notHeardSince}`]),
    ...(currentSession === null ? [] : [`session ${currentSession}`]),
    ...(gaps > 0 ? [`${counted(gaps, "gap")}, in which events may be missing`] : []),
  ];
  return parts.join("; ");
}

function newestText(operation: AnswerOf<"Operation">): string {
  const { kind, subject, loop, outcome, durationMs, cause } = operation;
  const what = kind === "loop" ? `loop ${loop} (${loopName(operation)})` : `command ${quoted(subject, 80)}`;
  const why = cause === null ? "" : ` because of ${quoted(cause.text === "" ? cause.reason : cause.text, 160)}`;
  return `newest ${what} ${outcome === null ? "is running" : `${outcome} after ${durationText(durationMs)}`}${why}`;
}
