import { isDeepStrictEqual } from "node:util";
import {
  type InventoryKind,
  pollRows,
  type RecordedUnary,
  type RecordedUpstream,
  type UnaryRpc,
} from "@tapedeck/fakes/rkt/recording";
import { messageOf, type RktAnswer } from "./client.ts";

/** After so many polls, makes the calls that were originally made then. */
export type PollStep = { readonly polls: number; readonly calls: readonly RecordedUnary[] };

const kindOf: { readonly [R in UnaryRpc]: InventoryKind } = {
  GetInfo: "pods",
  ListPods: "pods",
  InspectPod: "pods",
  ListImages: "images",
  InspectImage: "images",
};

/**
 * A recording in its original order, as far as it concerns the pods or the images. It stops at every other call, at
 * every poll with a new answer, and at the one after it: what has to be observed twice is accepted then. A poll is a
 * call like any other; of those with the same answer the last one is repeated.
 */
export function stepsOf(recording: RecordedUpstream, kind: InventoryKind): PollStep[] {
  const polls = pollRows(recording, kind);
  const steps: PollStep[] = [];
  let answered = 0;
  for (const row of recording.rows) {
    if (row.kind !== "unary" || kindOf[row.rpc] !== kind) continue;
    if (!polls.includes(row)) {
      steps.push({ polls: answered, calls: [row] });
      continue;
    }
    const isNew = (poll: number) => !isSame(polls[poll - 1], polls[poll]);
    const isLast = (row.tag !== "poll" && row.tag !== "look") || isNew(answered + 1);
    if (isNew(answered) || isNew(answered - 1) || isLast) {
      steps.push({ polls: answered + 1, calls: isLast && row.error === undefined ? [row] : [] });
    }
    answered += 1;
  }
  return steps;
}

/** The answer of the real rkt. */
export function answerOf({ rpc, response, error }: RecordedUnary): RktAnswer {
  return error === undefined ? { result: messageOf(rpc, response) } : { code: error.code, message: error.details };
}

function isSame(one: RecordedUnary | undefined, other: RecordedUnary | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isDeepStrictEqual(answerOf(one), answerOf(other));
}
