import type { Operation } from "@tapedeck/client";
import type { LogText } from "@tapedeck/client/lanes/loop";
import { type Loop, loopOfOperation, stepOfOperation } from "@tapedeck/client/lanes/step";
import { outputOf } from "../model/output.ts";
import type { LoopName } from "../model/route.ts";
import { reader } from "./reader.ts";
import { firstOf } from "./reading.ts";

export type LoopRecord = {
  readonly loop: Loop;
  readonly source: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The loops of the session that began before and after it; undefined: there is none. */
  readonly before: LoopName | undefined;
  readonly after: LoopName | undefined;
  readonly log: readonly LogText[];
};

const maxSteps = 1_000;
const maxLogLines = 20_000;

/** Everything that the view of a loop shows. Undefined: there is no such loop. */
export async function readLoop(name: LoopName, signal: AbortSignal): Promise<LoopRecord | undefined> {
  const { session, runner, loop } = name;
  const client = reader();
  const sessions = [session];
  const found = await firstOf(client.operations({ sessions, runner, loop, signal }), maxSteps);
  const own = found.find(({ kind }) => kind === "loop");
  if (own === undefined) return undefined;
  const [before, after] = await Promise.all([loopBefore(own, signal), loopAfter(own, signal)]);
  const written = await firstOf(
    client.events({
      sessions,
      kinds: ["log.written"],
      onGap: () => {},
      after: own.startPosition,
      // A loop's failure output may follow its end.
      until: after?.position ?? "now",
      signal,
    }),
    maxLogLines,
  );
  return {
    loop: { ...loopOfOperation(own), steps: stepsOf(found) },
    source: own.source,
    labels: own.labels ?? {},
    before,
    after: after?.loop,
    log: outputOf(written, loopOfOperation(own)),
  };
}

function stepsOf(operations: readonly Operation[]): Loop["steps"] {
  return operations
    .filter(({ kind }) => kind !== "loop")
    .toSorted(
      (a, b) => (a.startedAt ?? "").localeCompare(b.startedAt ?? "") || (a.startPosition < b.startPosition ? -1 : 1),
    )
    .map(stepOfOperation);
}

async function loopBefore(own: Operation, signal: AbortSignal): Promise<LoopName | undefined> {
  const until = { sessions: [own.session], kinds: ["loop"], at: own.startPosition, signal } as const;
  const newest = await firstOf(reader().operations(until), 2);
  return newest.find(({ startPosition }) => startPosition < own.startPosition);
}

async function loopAfter({ session, startPosition }: Operation, signal: AbortSignal) {
  const onGap = () => {};
  const later = {
    sessions: [session],
    kinds: ["loop.started"],
    after: startPosition,
    until: "now",
    onGap,
    signal,
  } as const;
  const [next] = await firstOf(reader().events(later), 1);
  if (next?.operation === undefined) return undefined;
  const { runner, loop } = next.operation;
  return { position: next.position, loop: { session, runner, loop } };
}
