import { operationKinds } from "@tapedeck/shared/events/kinds";

/** What traces are made of. */
export const readKinds: readonly string[] = [
  ...operationKinds.map((kind) => `${kind}.*`),
  ...["session.started", "session.labelled", "session.ended", "session.lost", "mirror.received"],
];

const ends = ["loop.succeeded", "loop.failed", "command.finished", "pod.exited", "session.ended", "session.lost"];

/** With which events spans are sent. A trace is sent when its run ends, or when the next loop begins before that. */
export function sentKinds(live: boolean): readonly string[] {
  return live ? [...ends, "*.started"] : ends;
}
