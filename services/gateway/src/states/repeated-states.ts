import type { ReadStateRequest } from "@tapedeck/proto/tapedeck/v1/query";
import type { LogReader } from "@tapedeck/shared/log/log";
import { type Position, parsePosition } from "@tapedeck/shared/log/position";
import type { QueryClient, ReadState } from "../query-client.ts";
import { LogEnd } from "./log-end.ts";
import type { RecentAnswers } from "./recent-answers.ts";

export type RepeatedStates = {
  readonly query: QueryClient;
  /** The log of the workspace of all requests. Throws while it is away. */
  readonly log: () => Pick<LogReader, "epoch" | "bounds">;
  readonly answers: RecentAnswers;
  /** Whether the log with this epoch is being removed. */
  readonly isRemoved: (epoch: string) => boolean;
};

/**
 * The same query, whose last answer about a state now is given again for as long as its position is the end of the log: then
 * nothing can have changed since, and no answer of any other process has more.
 */
export function repeatedStates({ query, log, answers, isRemoved }: RepeatedStates): QueryClient {
  const end = new LogEnd(log);
  const holds = async ({ head }: ReadState, minimum: string | undefined) => {
    const position = parsePosition(head.position);
    if (position === undefined || !reflects(position, minimum)) return false;
    return (await end.isAt(position)) && !isRemoved(position.epoch);
  };
  return {
    ...query,
    async readState(request) {
      if (request.at !== undefined && request.at !== "") return query.readState(request);
      const key = keyOf(request);
      const last = answers.get(key);
      if (last !== undefined && (await holds(last, request.min_position))) return last;
      const answer = await query.readState(request);
      if (!hasTimes(answer)) answers.put(key, answer);
      return answer;
    },
  };
}

/** All that the answer depends on, beside the moment. */
function keyOf({ at: _, min_position: __, ...question }: Partial<ReadStateRequest>): string {
  return JSON.stringify(Object.entries(question).sort());
}

function reflects(position: Position, minimum = ""): boolean {
  if (minimum === "") return true;
  const { epoch, offset } = parsePosition(minimum) ?? {};
  return epoch === position.epoch && offset !== undefined && offset <= position.offset;
}

/** When the collections of a polled source were heard is reported beside the log. */
function hasTimes({ head }: ReadState): boolean {
  return Object.keys(head.heard_at).length > 0;
}
