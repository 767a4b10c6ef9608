import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { largestPage } from "@tapedeck/shared/largest-page";
import { z } from "zod";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { listsJson } from "../tapedeck/lists.ts";
import { loopName, sourceText } from "./answer.ts";
import type { McpCall } from "./tool.ts";

export const whatForms =
  "a source (`alice/shop`), a loop (`<session>.<runner>.<loop>`, or `alice/shop#4` for the newest loop 4) or a session's id";

export const atField = z
  .string()
  .optional()
  .describe("A position or an RFC 3339 time: answer as of then. Default: now.");

const numbered = /^(?<source>[^#]+)#(?<loop>\d{1,10})$/;
const fullLoop = /^\w+\.\d+\.\d+$/;

/** What a call is about, as `compare` takes it. Without a name: what failed last. Undefined: nothing has failed. */
export async function namedSide(
  call: McpCall,
  what: string | undefined,
  at: string | undefined,
): Promise<string | undefined> {
  if (what === undefined) {
    if (at !== undefined) throw invalidArgument("`at` needs a source or a session in `what`", "what");
    return newestToFail(call);
  }
  const { source, loop } = numbered.exec(what)?.groups ?? {};
  if (source !== undefined) return loopOf(call, source, Number(loop));
  return at === undefined || fullLoop.test(what) ? what : `${what}@${at}`;
}

async function newestToFail({ apis, context }: McpCall): Promise<string | undefined> {
  const failed = { outcome: ["failed"], kind: ["loop" as const, "command" as const], limit: 1 };
  const { items } = await listsJson(apis.tapedeck.lists).search(context, failed);
  const [newest] = items as AnswerOf<"HistoryItem">[];
  if (newest === undefined) return undefined;
  return newest.kind === "loop" ? loopName(newest) : sourceText(newest.source);
}

async function loopOf({ apis, context }: McpCall, source: string, loop: number): Promise<string> {
  const request = { source: [source], kind: ["loop" as const], limit: largestPage };
  const { items } = await listsJson(apis.tapedeck.lists).operations(context, request);
  const found = (items as AnswerOf<"Operation">[]).find((one) => one.loop === loop);
  if (found !== undefined) return loopName(found);
  throw new TapedeckError(
    "not_found",
    `there is no loop ${loop} of ${source}: search_events lists loops with kinds ["loop.*"]`,
  );
}
