import { parsePosition } from "@tapedeck/shared/log/position";
import type { SourceName } from "@tapedeck/shared/source";
import type { QueryClient } from "../query-client.ts";

/** A source that was the only one to fit a call when query's tables stood at `position`. */
type Choice = { readonly source: SourceName; readonly position: string };

/** Another source has begun since the choice was made, so there may be another answer to it. */
export class OutdatedChoiceError extends Error {
  override readonly name = "OutdatedChoiceError";
}

/** Few workspaces have this many. */
const maxChoices = 1_000;

const choicesOf = new WeakMap<QueryClient, Map<string, Choice>>();

/** The choices that were made with the answers of a query, by the question. */
export function recentChoices(query: QueryClient): Map<string, Choice> {
  const choices = choicesOf.get(query) ?? new Map<string, Choice>();
  if (choices.size > maxChoices) choices.clear();
  choicesOf.set(query, choices);
  return choices;
}

/**
 * Reads a state of the chosen source. The answer says whether the choice still holds at the moment that it is of.
 * @throws OutdatedChoiceError
 */
export function readingChosen(query: QueryClient, { position }: Choice): QueryClient["readState"] {
  const chosenAt = parsePosition(position);
  return async (request) => {
    const answer = await query.readState({ ...request, with_newest_source: true });
    const newest = parsePosition(answer.head.newest_source ?? "");
    const isInForce =
      chosenAt !== undefined &&
      newest !== undefined &&
      newest.epoch === chosenAt.epoch &&
      newest.offset <= chosenAt.offset;
    if (!isInForce) throw new OutdatedChoiceError("another source has begun since");
    return answer;
  };
}
