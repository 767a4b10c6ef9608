import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { listsJson } from "../tapedeck/lists.ts";
import {
  Answer,
  counted,
  durationText,
  loopName,
  quoted,
  sourceText,
  textField,
  tokensField,
  withoutSilence,
} from "./answer.ts";
import { atField, positionNow } from "./named-side.ts";
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
  async answer({ developer, project, upstream, at: given, page, tokens }, call) {
    const { apis, context, page: base } = call;
    const many = (value: string | undefined) => (value === undefined ? undefined : [value]);
    const filter = { developer: many(developer), project: many(project), upstream: many(upstream) };
    const lists = listsJson(apis.tapedeck.lists);
    const at = given ?? (await positionNow(call));
    const found = await lists.sources(context, { ...filter, at, limit: pageSize, ...(page && { page }) });
    const sources = found.items as AnswerOf<"Source">[];
    const [newest, silent] = await Promise.all([newestOf(sources), silentOf(sources)]);
    const answer = new Answer(tokens);
    if (sources.length === 0)
      answer.add(`No source is recorded${given === undefined ? "" : " up to then"} that matches.`);
    const shown = answer.section({
      entries: sources.map((source) => sourceLine(source, newest.get(source.source), silent.get(source.source))),
      rest: (count) => `${counted(count, "more source")}. Ask with more \`tokens\`, a \`developer\` or a \`project\`.`,
      isMain: true,
    });
    if (shown === sources.length && found.nextPage !== undefined)
      answer.leaveOut(`further sources. Ask with page ${JSON.stringify(found.nextPage)}.`);
    const { position } = found;
    const again = call.again({ at: position });
    const isAll = page === undefined && Object.values(filter).every((one) => one === undefined);
    return answer.end({
      position,
      again: silent.size > 0 ? `${again} ${withoutSilence}` : again,
      ...(isAll && { page: { address: `${base}/`, isNow: true } }),
    });

    /** Polled sources that are late now, though nothing is recorded about it. */
    async function silentOf(of: readonly AnswerOf<"Source">[]) {
      if (given !== undefined || of.length === 0) return new Map<string, string>();
      const { items } = await lists.sources(context, { source: of.map(({ source }) => source), limit: pageSize });
      const late = (items as AnswerOf<"Source">[]).flatMap(({ source, status, notHeardSince }) =>
        status === "recording" && notHeardSince !== null ? [[source, notHeardSince] as const] : [],
      );
      return new Map(late);
    }

    async function newestOf(of: readonly AnswerOf<"Source">[]) {
      if (of.length === 0) return new Map<string, AnswerOf<"Operation">>();
      const request = {
        source: of.map(({ source }) => source),
        kind: ["loop" as const, "command" as const],
        per_source: 1,
      };
      // Both lists are as of the same position.
      const { items } = await lists.operations(context, { ...request, limit: pageSize, at: found.position });
      return new Map((items as AnswerOf<"Operation">[]).map((operation) => [operation.source, operation]));
    }
  },
});

/** A filter takes as many sources. */
const pageSize = 100;

function sourceLine(
  source: AnswerOf<"Source">,
  newest: AnswerOf<"Operation"> | undefined,
  silentSince: string | undefined,
): string {
  const { status, currentSession, gaps } = source;
  const notHeardSince = silentSince ?? source.notHeardSince;
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
