import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { stepKinds } from "../tapedeck/compare/side.ts";
import { listsJson } from "../tapedeck/lists.ts";
import { positionOrTime } from "../tapedeck/parameter-schemas.ts";
import { loopName, sourceText } from "./answer.ts";
import type { McpCall } from "./tool.ts";

/** A source, as every tool takes it. */
export const sourceField = z
  .string()
  .regex(/^[^/#]+(\/[^/#]+){1,3}$/, "is not a source such as alice/shop, also with /upstream after it");

export const sessionField = z.string().regex(/^\w+$/, "is not a session's id, such as list_sources names");

export const atField = positionOrTime
  .optional()
  .describe("A position or an RFC 3339 time: answer as of then. Default: now.");

/** What an answer is about, in the tools for a loop, command or session. */
export const subjectFields = {
  source: sourceField.optional().describe("`alice/shop`, or with `/upstream`."),
  loop: z
    .string()
    .regex(/^(\w+\.\d+\.\d+|[^#]+\/[^#]+#\d{1,10})$/, "is not a loop: <session>.<runner>.<loop>, or alice/shop#4")
    .optional()
    .describe("`<session>.<runner>.<loop>`, or `alice/shop#4` for the newest loop 4. Instead of `source`."),
  session: sessionField.optional().describe("A session's id. Instead of `source`."),
};

const numbered = /^(?<source>[^#]+)#(?<loop>\d{1,10})$/;

type Subject = { readonly [Name in keyof typeof subjectFields | "at"]?: string | undefined };

/** The position that the tables have come to. */
export async function positionNow({ apis, context }: McpCall): Promise<string> {
  return (await apis.tapedeck.lists.sources(context, { filter: {}, limit: 1 })).position;
}

/** The position of a moment. */
export async function positionAt({ apis, context }: McpCall, at: string): Promise<string> {
  return (await apis.tapedeck.lists.sources(context, { filter: {}, limit: 1, at })).position;
}

/** The log has events before the tables know of them. */
export async function endOfLog({ apis, context }: McpCall): Promise<string> {
  const { workspace, signal } = context;
  return (await apis.tapedeck.events({ workspace, filter: {}, after: "now", limit: 1, signal }, context)).position;
}

/** Positions sort as the log does. */
export function earlierOf(one: string | undefined, other: string): string {
  return one !== undefined && one < other ? one : other;
}

/** What a call is about, as `compare` takes it. Without a name: what failed last. Undefined: nothing has failed. */
export async function namedSide(call: McpCall, { source, loop, session, at }: Subject): Promise<string | undefined> {
  const names = [source, loop, session].filter((name) => name !== undefined);
  if (names.length > 1) throw invalidArgument("either `source`, `loop` or `session`: the latter two have their source");
  if (loop !== undefined) return sideOf(call, loop, at);
  const [name] = names;
  if (name !== undefined) return name;
  if (at !== undefined) throw invalidArgument("`at` needs a `source`, `loop` or `session`", "at");
  return newestToFail(call);
}

/** A side of a comparison, `alice/shop#4` by the name of the newest such loop at that time. */
export async function sideOf(call: McpCall, text: string, at: string | undefined): Promise<string> {
  const { source, loop } = numbered.exec(text)?.groups ?? {};
  return source === undefined ? text : loopOf(call, source, Number(loop), at);
}

/**
 * A filter for a source that nobody records would find nothing, without a word.
 * @throws TapedeckError unknown_source
 */
export async function assertRecorded({ apis, context }: McpCall, source: string | undefined): Promise<void> {
  if (source === undefined) return;
  const { items } = await apis.tapedeck.lists.sources({ ...context, source }, { filter: {}, limit: 1 });
  if (items.length === 0) throw new TapedeckError("unknown_source", `no source "${source}" has been recorded`);
}

/** @throws TapedeckError unknown_session */
export async function sessionNamed({ apis, context }: McpCall, session: string): Promise<AnswerOf<"Session">> {
  const { items } = await listsJson(apis.tapedeck.lists).sessions(context, { session: [session], limit: 1 });
  const [found] = items as AnswerOf<"Session">[];
  if (found !== undefined) return found;
  throw new TapedeckError("unknown_session", `there is no session "${session}"`);
}

/** Failed steps that are searched for one outside of loops. */
const maxSteps = 50;

async function newestToFail({ apis, context }: McpCall): Promise<string | undefined> {
  const lists = listsJson(apis.tapedeck.lists);
  const outcome = ["failed"];
  const [units, steps] = await Promise.all([
    lists.search(context, { outcome, kind: ["loop", "command"], limit: 1 }),
    lists.operations(context, { outcome, kind: stepKinds, limit: maxSteps }),
  ]);
  const [newest] = units.items as AnswerOf<"HistoryItem">[];
  const oneShot = (steps.items as AnswerOf<"Operation">[]).find(({ loop }) => loop === 0);
  if (oneShot !== undefined && oneShot.startPosition > (newest?.startPosition ?? "")) return oneShot.session;
  if (newest === undefined) return undefined;
  return newest.kind === "loop" ? loopName(newest) : sourceText(newest.source);
}

async function loopOf(
  { apis, context }: McpCall,
  source: string,
  loop: number,
  at: string | undefined,
): Promise<string> {
  const request = { source: [source], kind: ["loop" as const], loop, limit: 1, at };
  const { items } = await listsJson(apis.tapedeck.lists).operations(context, request);
  const [found] = items as AnswerOf<"Operation">[];
  if (found !== undefined) return loopName(found);
  throw new TapedeckError(
    "not_found",
    `there is no loop ${loop} of ${source}: search_events lists loops with kinds ["loop.*"]`,
  );
}
