import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { EventJson } from "@tapedeck/shared/events/json";
import { kinds as allKinds, isTextKind, kindNoun } from "@tapedeck/shared/events/kinds";
import { positionBefore } from "@tapedeck/shared/log/position";
import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { historyKinds } from "../tapedeck/list-request.ts";
import { listsJson } from "../tapedeck/lists.ts";
import { position, positionOrTime } from "../tapedeck/parameter-schemas.ts";
import { filterOf } from "../tapedeck/parameters.ts";
import {
  Answer,
  data,
  durationText,
  loopName,
  quoted,
  refuseBoth,
  sourceText,
  textField,
  tokensField,
} from "./answer.ts";
import { assertRecorded, atField, earlierOf, endOfLog, positionAt, sessionField, sourceField } from "./named-side.ts";
import { type McpCall, type ToolCall, tool } from "./tool.ts";

const names = (what: string) => z.array(textField).max(50).optional().describe(what);

const inputSchema = z.strictObject({
  text: z
    .string()
    .optional()
    .describe(
      "Finds loops, commands, jobs, pods and sessions by a text in their causes, output, artifacts, labels or names: three letters or digits in a row at least.",
    ),
  kinds: names(
    "Of events: `build.failed`, `build.*`, `*.failed` … Default: all but output. With `text`: loop, command, job, pod, session.",
  ),
  source: sourceField.optional().describe("`alice/shop`, or with `/upstream`."),
  developer: textField.optional(),
  project: textField.optional(),
  session: sessionField.optional(),
  subject: textField.optional().describe("An artifact, resource, pod, job … Not with `text`."),
  outcome: z.enum(["succeeded", "failed", "canceled", "unknown"]).optional(),
  before: position.optional().describe("A position: the newest events before it. Not with `text`."),
  after: positionOrTime
    .optional()
    .describe("A position or time: the first events after it, instead of the newest. Not with `text`."),
  at: atField,
  page: z.string().optional().describe("With `text`: the `page` that an earlier answer names."),
  limit: z.int().min(1).max(200).default(30),
  tokens: tokensField,
});

type Input = z.infer<typeof inputSchema>;

export const searchEvents = tool({
  name: "search_events",
  title: "Find events, or loops by a text",
  description:
    "The newest recorded events that match, or the first ones after a position. With `text`: the newest loops, commands, jobs, pods and sessions in which it stands, with the line.",
  input: inputSchema,
  async answer(input, call) {
    await assertRecorded(call, input.source);
    return input.text === undefined ? eventsText(input, call) : foundText(input, input.text, call);
  },
});

const one = <Value>(value: Value | undefined) => (value === undefined ? undefined : [value]);

/** The part of the filter that events and loops have. */
function scopeOf({ source, developer, project, session, outcome }: Input) {
  return {
    source: one(source),
    developer: one(developer),
    project: one(project),
    session: one(session),
    outcome: one(outcome),
  };
}

/** All but output and what repeats. */
const facts = [...new Set(allKinds.map(kindNoun))]
  .filter((noun) => noun !== "mirror" && !allKinds.some((kind) => isTextKind(kind) && kindNoun(kind) === noun))
  .map((noun) => `${noun}.*`);

async function eventsText(input: Input, call: ToolCall): Promise<string> {
  const { apis, context, page } = call;
  const { kinds = facts, session, subject, before, after, at, limit, tokens } = input;
  refuseBoth(input, "before", "after");
  if (input.page !== undefined) throw invalidArgument("`page` is for `text`: events have `before` and `after`", "page");
  const until = before === undefined ? at : await lastBefore(call, before, at);
  const filter = filterOf({
    kind: kinds,
    ...scopeOf(input),
    subject: one(subject),
  });
  const { workspace, signal } = context;
  const which = after === undefined ? { after: "start", last: limit, orFewer: true } : { after };
  const request = { workspace, filter, limit, signal, ...which, ...(until !== undefined && { until }) };
  const found = await apis.tapedeck.events(request, context);
  const answer = new Answer(tokens);
  // Newest first, so that what is cut is the oldest.
  const items = after === undefined ? found.items.toReversed() : found.items;
  if (items.length === 0) answer.add("No event matches.");
  const last = (count: number) => items[items.length - count - 1]?.position;
  const more = (count: number) =>
    after === undefined
      ? `older events. Ask with before ${last(count)}.`
      : `later events. Ask with after ${last(count)}.`;
  const shown = answer.section({ entries: items.map(eventLine), rest: more, isMain: true });
  const { position, nextPage, isCut = false } = found;
  if (shown === items.length) {
    if (nextPage !== undefined) answer.leaveOut(`later events. Ask with after ${nextPage}.`);
    else if (after === undefined && (isCut || (shown > 0 && shown === limit))) answer.leaveOut(more(0));
  }
  // Asked again, a page with a next one ends at the same event, and still has it.
  const end = nextPage === undefined ? position : (at ?? (await endOfLog(call)));
  // A page before a position stays the same by itself.
  const again = call.again(before === undefined || at !== undefined ? { at: end } : {});
  return answer.end({ position, again, page: shownPage() });

  /** A session's page has all of its events. */
  function shownPage() {
    const { source, developer, project, outcome } = input;
    const others = [source, developer, project, outcome, subject, input.kinds, before, after];
    if (session === undefined || others.some((one) => one !== undefined)) return undefined;
    return { address: `${page}/sessions/${session}?${new URLSearchParams({ at: position })}` };
  }
}

/** The last position before one that is no later than `at`. */
async function lastBefore(call: McpCall, before: string, at: string | undefined): Promise<string> {
  const last = positionBefore(before) ?? before;
  return at === undefined ? last : earlierOf(last, await positionAt(call, at));
}

function eventLine({ position, recordedAt, kind, subject = "", source, summary, operation, error }: EventJson): string {
  const loop = Number(operation?.loop ?? 0) === 0 ? "" : `, loop ${operation?.loop}`;
  const about = subject === "" ? "" : ` ${quoted(subject, 80)}`;
  const why = error === undefined || summary.includes(error.message) ? "" : `, error ${quoted(error.message, 160)}`;
  return `${position} ${recordedAt} ${sourceText(source)}${loop}: ${kind}${about}: ${quoted(summary, 200)}${why}`;
}

async function foundText(input: Input, text: string, { apis, context, page }: ToolCall): Promise<string> {
  const { limit, tokens } = input;
  for (const name of ["subject", "before", "after", "at"] as const) refuseBoth(input, "text", name);
  const request = {
    q: text,
    kind: kindsOf(input),
    ...scopeOf(input),
    limit,
    page: input.page,
  };
  const found = await listsJson(apis.tapedeck.lists).search(context, request);
  const { total, totalIsMinimum } = found as { total?: number; totalIsMinimum?: boolean };
  const items = found.items as AnswerOf<"HistoryItem">[];
  const answer = new Answer(tokens);
  const count = total ?? items.length;
  if (items.length === 0) answer.add("Nothing matches.");
  const shown = answer.section({
    heading: `${totalIsMinimum ? "More than " : ""}${count} ${count === 1 ? "matches" : "match"}, the newest first:`,
    entries: items.map((item) => itemLines(item).join("\n")),
    rest: (left) =>
      left === 0
        ? "a part of what was found. Ask with more `tokens`."
        : `${left} of this page. Ask with limit ${items.length - left}, and then by \`page\`.`,
    isMain: true,
  });
  if (shown === items.length && found.nextPage !== undefined)
    answer.leaveOut(`older matches. Ask with page ${JSON.stringify(found.nextPage)}.`);
  const query = historyQuery(input, text);
  const address = `${page}/loops?${query}`;
  const again = "a search for a text is always of now.";
  return answer.end({ position: found.position, again, ...(query && { page: { address, isNow: true } }) });
}

/** The history of the page has no filter by upstream or session, and no pages by name. */
function historyQuery({ source, developer, project, session, outcome, kinds = [], page }: Input, text: string) {
  const [ofDeveloper, ofProject, ...more] = source?.split("/") ?? [];
  if (more.length > 0 || session !== undefined || page !== undefined) return undefined;
  const named = { developer: ofDeveloper ?? developer, project: ofProject ?? project, outcome };
  const query = new URLSearchParams({ q: text });
  for (const kind of kinds) query.append("kind", kind);
  for (const [name, value] of Object.entries(named)) if (value !== undefined) query.append(name, value);
  return query;
}

function kindsOf({ kinds }: Input): (typeof historyKinds)[number][] | undefined {
  return kinds?.map((kind) => {
    const known = historyKinds.find((name) => name === kind);
    if (known === undefined) throw invalidArgument(`with \`text\`, kinds are ${historyKinds.join(", ")}`, "kinds");
    return known;
  });
}

function itemLines(item: AnswerOf<"HistoryItem">): string[] {
  const { kind, source, session, loop, subject, outcome, durationMs, startedAt, startPosition, hit } = item;
  const what =
    kind === "loop"
      ? `loop ${loop} (${loopName(item)})`
      : `${kind}${subject === "" ? "" : ` ${quoted(subject, 80)}`} (session ${session})`;
  const how = outcome === null ? "running or unknown" : `${outcome} after ${durationText(durationMs)}`;
  const head = `${sourceText(source)}, ${what}: ${how}; began ${startedAt ?? "at an unknown time"} at ${startPosition}`;
  if (hit === undefined) return [head];
  const about = hit.subject === "" ? "" : ` ${quoted(hit.subject, 80)}`;
  const step = hit.step === "" ? "" : ` of ${hit.step}${about}`;
  return [
    `${head}; in its ${hit.place}${step}${hit.position === null ? "" : `, at ${hit.position}`}:`,
    ...data(hit.text),
  ];
}
