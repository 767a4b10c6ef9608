import type { Operation } from "@tapedeck/client";
import { millis, plainText } from "@tapedeck/client/lanes/format";
import type { LogText } from "@tapedeck/client/lanes/loop";
import { loopsOf } from "@tapedeck/client/lanes/now";
import { type Loop, loopOfOperation, stepOfOperation } from "@tapedeck/client/lanes/step";
import type { LoopName } from "../model/route.ts";
import { reader } from "./reader.ts";
import { firstOf } from "./reading.ts";

export type LoopRecord = {
  readonly loop: Loop;
  readonly source: string;
  readonly labels: Readonly<Record<string, string>>;
  /** All of the session, oldest first. */
  readonly siblings: readonly Loop[];
  readonly suggestions: readonly string[];
  readonly log: readonly LogText[];
};

const mostLoops = 1_000;
const mostLogLines = 20_000;

/** Everything that the view of a loop shows. Undefined: there is no such loop. */
export async function readLoop(name: LoopName, signal: AbortSignal): Promise<LoopRecord | undefined> {
  const client = reader();
  const sessions = [name.session];
  const listed = await firstOf(client.operations({ sessions, kinds: ["loop"], signal }), mostLoops);
  const own = listed.find(({ runner, loop }) => runner === name.runner && loop === name.loop);
  if (own === undefined) return undefined;
  const steps = await stepsOf(own, signal);
  const next = listed.find((one) => one.runner === own.runner && one.loop === own.loop + 1);
  const written = await firstOf(
    client.events({
      sessions,
      kinds: ["log.written", "*.failed"],
      after: own.startPosition,
      // A loop's failure output may follow its end.
      until: next?.startPosition ?? "now",
      signal,
    }),
    mostLogLines,
  );
  const ownEvents = written.filter(({ operation }) => operation?.loop === own.loop && operation.runner === own.runner);
  const log = ownEvents.flatMap((event): LogText[] => {
    if (event.kind !== "log.written" || event.detail === undefined || event.detail.noise) return [];
    const { text, task, subtask } = event.detail;
    return [{ text: plainText(text), task, subtask }];
  });
  const suggestions = ownEvents.flatMap(({ error }) => error?.suggestions ?? []);
  return {
    loop: { ...loopOfOperation(own), steps: steps.map(stepOfOperation) },
    source: own.source,
    labels: own.labels ?? {},
    siblings: loopsOf(listed, mostLoops),
    suggestions: [...new Set(suggestions)],
    log,
  };
}

/** The steps of a loop began while it ran; there is no filter by loop. */
async function stepsOf(loop: Operation, signal: AbortSignal): Promise<readonly Operation[]> {
  const marginMs = 1_000;
  const from = new Date((millis(loop.startedAt) ?? 0) - marginMs);
  const end = millis(loop.endedAt);
  const found = await firstOf(
    reader().operations({
      sessions: [loop.session],
      from,
      ...(end !== undefined && { to: new Date(end + marginMs) }),
      signal,
    }),
    mostLoops,
  );
  return found
    .filter((one) => one.kind !== "loop" && one.runner === loop.runner && one.loop === loop.loop)
    .toSorted(
      (a, b) => (a.startedAt ?? "").localeCompare(b.startedAt ?? "") || (a.startPosition < b.startPosition ? -1 : 1),
    );
}
