import type { LogReader } from "@tapedeck/shared/log/log";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import type { Caller } from "../../call-context.ts";
import type { QueryClient } from "../../query-client.ts";
import type { Answer } from "./answers.ts";

/** How far the tables are behind the log, and how large that is: two questions that cost next to nothing. */
export async function statusOf(
  query: Pick<QueryClient, "position">,
  log: LogReader,
  { roles, everywhere }: Pick<Caller, "roles" | "everywhere">,
): Promise<Answer<"Status">> {
  // The log's size tells how much all workspaces record.
  const seesAll = roles === undefined || everywhere === true;
  const [{ position, log_position }, { messages, bytes }] = await Promise.all([query.position(), log.bounds()]);
  const [behind, end] = [position, log_position].map((text) => sequenceOf(parsePosition(text)?.offset ?? logStart));
  return {
    position,
    logPosition: log_position,
    behindMessages: String(Math.max(0, (end ?? 0) - (behind ?? 0))),
    log: seesAll ? { messages: String(messages), bytes: String(bytes) } : null,
  };
}
