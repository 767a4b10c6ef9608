import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { EventJson } from "@tapedeck/shared/events/json";
import { textKinds } from "@tapedeck/shared/events/kinds";
import { positionBefore } from "@tapedeck/shared/log/position";
import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { listsJson } from "../tapedeck/lists.ts";
import { position } from "../tapedeck/parameter-schemas.ts";
import { Answer, counted, data, maxTokens, type Page, quoted, sourceText, textField, tokensField } from "./answer.ts";
import { atField, earlierOf, endOfLog, namedSide, positionAt, subjectFields } from "./named-side.ts";
import { type McpCall, tool } from "./tool.ts";

/** The output of a session, or that of a loop in it. */
type Scope = {
  readonly session: string;
  readonly source: string;
  readonly loop?: { readonly runner: number; readonly loop: number };
  /** Positions between which it is looked for first. */
  readonly after: string;
  readonly until?: string | undefined;
  /** Nothing that was recorded after this position is read. */
  readonly at: string;
  readonly page: Page;
  readonly has: (event: EventJson) => boolean;
};

export const readOutput = tool({
  name: "read_output",
  title: "What was printed?",
  description:
    "What a loop, or a session, printed: the errors first, then the newest lines. `before` pages back to earlier ones.",
  input: z.strictObject({
    ...subjectFields,
    source: subjectFields.source.describe(
      "`alice/shop`, or with `/upstream`: its newest session. Default: what failed last.",
    ),
    subject: textField.optional().describe("Only what this artifact, container, pod or job printed."),
    before: position.optional().describe("A position: what was printed before it."),
    at: atField,
    tokens: tokensField,
  }),
  async answer({ source, loop, session, subject, before, at, tokens }, call) {
    const name = await namedSide(call, { source, loop, session, at });
    if (name === undefined)
      throw new TapedeckError("not_found", "nothing has failed: name a `source`, `loop` or `session`");
    const scope = await scopeOf(call, name, await positionOf(call, at));
    const pinned = {
      source: undefined,
      loop: undefined,
      session: undefined,
      ...(scope.loop === undefined ? { session: scope.session } : { loop: name }),
      at: scope.at,
    };
    const answer = new Answer(tokens);
    answer.add(
      `${sourceText(scope.source)}, ${scope.loop === undefined ? `session ${scope.session}` : `loop ${scope.loop.loop}`}`,
    );
    if (before === undefined) await addErrors(answer, call, scope);
    const maxLine = longestLine(tokens);
    const selection = { subject, before, maxBytes: answer.left, maxLine };
    const near = await newestLines(call, scope, selection);
    // It may be recorded long after the loop.
    const isMissing = near.lines.length === 0 && near.first === undefined && scope.until !== undefined;
    const found = isMissing ? await newestLines(call, { ...scope, until: undefined }, selection) : near;
    if (found.lines.length === 0)
      answer.add(
        found.first === undefined
          ? "No output is recorded there."
          : `None of the output from position ${found.first} on belongs to it.`,
      );
    const shown = addNewest(
      answer,
      found,
      `Output${before === undefined ? ", up to the newest" : ` before ${before}`}:`,
    );
    if (shown.some((line) => line.length > marked + maxLine))
      answer.leaveOut(
        `the ends of long lines. ${tokens < maxTokens ? "Ask with more `tokens`" : "The page has them"}.`,
      );
    if (found.first !== undefined) answer.leaveOut(`earlier output. Ask as below, and with before ${found.first}.`);
    return answer.end({ position: scope.at, again: call.again(pinned), page: scope.page });
  },
});

async function positionOf(call: McpCall, at: string | undefined): Promise<string> {
  return at === undefined ? endOfLog(call) : positionAt(call, at);
}

/** The characters that are shown of a line: a tenth of the answer's tokens. */
const longestLine = (tokens: number) => Math.max(400, Math.floor(tokens / 10));
/** The length of the mark before each line. */
const marked = 2;

/** A single event may have printed more than fits: the end of it is shown. Returns the lines that are. */
function addNewest(answer: Answer, { lines, size }: Lines, heading: string): readonly string[] {
  let from = 0;
  for (let bytes = size; bytes > answer.left - Buffer.byteLength(heading) - 1 && from < lines.length - 1; from++)
    bytes -= Buffer.byteLength(lines[from] ?? "") + 1;
  const rest = () => "a part of the last line. Ask with more `tokens`.";
  const entries = lines.slice(from);
  const shown = answer.section({ heading, entries, rest, isMain: true });
  if (from > 0) answer.leaveOut(`${counted(from, "line")} before these. Ask with more \`tokens\`.`);
  return entries.slice(0, shown);
}

async function scopeOf({ apis, context, page }: McpCall, name: string, at: string): Promise<Scope> {
  const lists = listsJson(apis.tapedeck.lists);
  const [, session = "", runner, loop] = /^(\w+)\.(\d+)\.(\d+)$/.exec(name) ?? [];
  if (session === "") {
    const { session, source, startPosition } = await sessionOf();
    const after = positionBefore(startPosition) ?? "start";
    const address = `${page}/sessions/${session}?${new URLSearchParams({ at })}`;
    return { session, source, after, at, page: { address }, has: () => true };
  }
  const number = { runner: Number(runner), loop: Number(loop) };
  const find = async (which: number) => {
    const request = { session: [session], kind: ["loop" as const], runner: number.runner, loop: which, limit: 1, at };
    return (await lists.operations(context, request)).items[0] as AnswerOf<"Operation"> | undefined;
  };
  const [earlier, own, next, last] = await Promise.all(
    [number.loop - 1, number.loop, number.loop + 1, number.loop + 2].map((which) => find(Math.max(which, 0))),
  );
  if (own === undefined) throw new TapedeckError("not_found", `there is no loop ${name}`);
  return {
    session,
    source: own.source,
    loop: number,
    // What names the loop may be recorded late, or early: Skaffold prints on another channel than it reports its steps.
    after: positionBefore(earlier?.startPosition ?? own.startPosition) ?? "start",
    until: last?.startPosition,
    at,
    page: { address: `${page}/loops/${name}`, isNow: true },
    has: ({ operation, position }) => {
      if (operation !== undefined && operation.kind !== "" && operation.kind !== undefined)
        return Number(operation.runner) === number.runner && Number(operation.loop) === number.loop;
      return position >= own.startPosition && (next === undefined || position < next.startPosition);
    },
  };

  async function sessionOf(): Promise<AnswerOf<"Session">> {
    const of = name.includes("/") ? { source: [name] } : { session: [name] };
    const { items } = await lists.sessions(context, { ...of, limit: 1, at });
    const [found] = items as AnswerOf<"Session">[];
    if (found !== undefined) return found;
    throw new TapedeckError(name.includes("/") ? "unknown_source" : "unknown_session", `"${name}" is not recorded`);
  }
}

const maxErrors = 5;
/** How many are counted. */
const maxFailed = 50;
const maxErrorLines = 5;

/** The steps that failed, with the line that says why. */
async function addErrors(answer: Answer, { apis, context }: McpCall, { session, loop, at }: Scope): Promise<void> {
  const request = { session: [session], outcome: ["failed"], ...loop, limit: maxFailed, at };
  const { items, nextPage } = await listsJson(apis.tapedeck.lists).operations(context, request);
  const all = (items as AnswerOf<"Operation">[]).filter(({ kind }) => kind !== "loop");
  const failed = all.slice(0, maxErrors);
  const hidden = all.length - failed.length;
  const older = (count: number) =>
    `${counted(count, "older error")}${nextPage === undefined ? "" : ", or more"}. Call \`search_events\` with session ${session} and kinds ["*.failed"].`;
  const shown = answer.section({
    heading: "Errors, the newest first:",
    entries: failed.map(failureText),
    rest: (count) =>
      hidden > 0
        ? older(count + hidden)
        : `${count === 0 ? "a part" : count} of the errors. Ask with more \`tokens\`, or \`why_failed\`.`,
    keeping: answer.left / 2,
  });
  if (hidden > 0 && shown === failed.length) answer.leaveOut(older(hidden));
}

/** A step that failed, and the lines that say why. */
function failureText({ kind, subject, errorCode, error, cause, endPosition }: AnswerOf<"Operation">): string {
  const code = errorCode === "" ? "" : `, code ${quoted(errorCode, 60)}`;
  const about = subject === "" ? "" : ` ${quoted(subject, 80)}`;
  const lines = data(cause === null || cause.text === "" ? error : cause.text);
  const more = lines.length - maxErrorLines;
  return [
    `${kind}${about} failed${code}${endPosition === null ? "" : ` at ${endPosition}`}`,
    ...lines.slice(0, maxErrorLines),
    ...(more > 0 ? [`(${counted(more, "more line")}: why_failed has them)`] : []),
  ].join("\n");
}

type Lines = {
  readonly lines: readonly string[];
  /** Their bytes. */
  readonly size: number;
  /** The position of the first line, if there may be earlier ones. */
  readonly first: string | undefined;
};

type Selection = {
  readonly subject: string | undefined;
  readonly before: string | undefined;
  readonly maxBytes: number;
  /** The most characters of a line. */
  readonly maxLine: number;
};

const pageSize = 200;
/** Pages that are looked through for a loop or a subject. */
const maxPages = 10;

async function newestLines(
  { apis, context }: McpCall,
  scope: Scope,
  { subject, before, maxBytes, maxLine }: Selection,
): Promise<Lines> {
  const { workspace, signal } = context;
  const filter = { sessions: [scope.session], kinds: textKinds };
  let until = earlierOf(before === undefined ? scope.until : (positionBefore(before) ?? before), scope.at);
  let left = maxBytes - 100;
  let earliest: string | undefined;
  const events: EventJson[] = [];
  const all = (isMore: boolean): Lines => {
    const lines = linesOf(events, maxLine);
    return { lines, size: sizeOf(lines), first: isMore ? events[0]?.position : undefined };
  };
  for (let page = 0; page < maxPages; page++) {
    const found = await apis.tapedeck.events(
      {
        workspace,
        filter,
        after: scope.after,
        limit: pageSize,
        last: pageSize,
        orFewer: true,
        signal,
        until,
      },
      context,
    );
    for (const event of found.items.toReversed()) {
      if (!scope.has(event) || !isOf(event, subject)) continue;
      // Each line has a mark of its own.
      const bytes = sizeOf(linesOf([event], maxLine));
      if (bytes > left && events.length > 0) return all(true);
      events.unshift(event);
      left -= bytes;
    }
    const [oldest] = found.items;
    if (oldest === undefined || (found.items.length < pageSize && !found.isCut)) return all(false);
    earliest = oldest.position;
    until = positionBefore(oldest.position) ?? oldest.position;
  }
  return { ...all(true), first: events[0]?.position ?? earliest };
}

function sizeOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
}

/** Pieces of a line may come one by one. */
function linesOf(events: readonly EventJson[], maxLine: number): string[] {
  const text = events.map(({ detail = {} }) => String(detail.text ?? "")).join("");
  return text === "" ? [] : data(text, maxLine);
}

function isOf(event: EventJson, subject: string | undefined): boolean {
  const { detail = {} } = event;
  if (detail.noise === true) return false;
  return subject === undefined || [event.subject, detail.container, detail.subtask, detail.pod].includes(subject);
}
