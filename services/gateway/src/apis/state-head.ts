import { timeToJson } from "@tapedeck/shared/events/time-text";
import type { AnswerHead } from "../call-context.ts";
import type { ReadState } from "../query-client.ts";

/** The head of an answer about state. */
export function stateHead({
  position,
  session,
  session_ended,
  not_heard_since,
}: Omit<ReadState["head"], "source">): AnswerHead {
  const notHeardSince = not_heard_since && timeToJson(not_heard_since);
  return { position, session, sessionEnded: session_ended, ...(notHeardSince !== undefined && { notHeardSince }) };
}
