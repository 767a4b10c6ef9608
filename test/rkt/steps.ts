import { isDeepStrictEqual } from "node:util";
import {
  type InventoryKind,
  pollRows,
  type RecordedUnary,
  type RecordedUpstream,
  type UnaryRpc,
} from "@tapedeck/fakes/rkt/recording";
import { messageOf, type RktAnswer } from "./client.ts";

/** So many polls have been answered; then the calls are made that were made then. */
export type PollStep = { readonly polls: number; readonly calls: readonly RecordedUnary[] };

const kindOf: { readonly [R in UnaryRpc]: InventoryKind } = {
  GetInfo: "pods",
  ListPods: "pods",
  InspectPod: "pods",
  ListImages: "images",
  InspectImage: "images",
};

/**
 * A recording in the order in which it was made, as far as it is about the pods or about the images. It stands still
 * where something was asked, at every poll that answered something new, and at the one after it: what has to be seen twice
 * is believed then. A poll is a call like any other; of those that answered the same the last one is asked again.
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

/** What the real one answered. */
export function answerOf({ rpc, response, error }: RecordedUnary): RktAnswer {
  return error === undefined ? { result: messageOf(rpc, response) } : { code: error.code, message: error.details };
}

function isSame(one: RecordedUnary | undefined, other: RecordedUnary | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isDeepStrictEqual(answerOf(one), answerOf(other));
}
