import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { write } from "@tapedeck/query/testing/scenario";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { endPosition, eventPosition } from "@tapedeck/shared/testing/positions";
import { type Stack, startStack } from "./stack.ts";

/** A stack without taps whose log the test writes. */
export type SeededStack = AsyncDisposable & {
  readonly stack: Stack;
  /** The log of the workspace `acme`. */
  readonly log: Log;
  /** Writes events, each into the log of its workspace; resolves with their sequences there. */
  write(events: readonly Event[]): Promise<number[]>;
  /** Writes events and waits until query has folded them; resolves with their sequences. */
  seed(events: readonly Event[]): Promise<number[]>;
  /** The position of the event in a message, as clients see it. */
  at(seq: number): string;
  /** The position after a whole message: how far the log, the tables or a reader have come. */
  endAt(seq: number): string;
};

/** The callers' workspace is `acme`, as in the scenarios. */
export async function startSeededStack(env: Readonly<Record<string, string>> = {}): Promise<SeededStack> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack({ skaffold: [], env: { TAPEDECK_WORKSPACE: "acme", ...env } }));
  const log = await stack.logs.of("acme");
  const writeAll = async (events: readonly Event[]) => {
    const seqs = new Map<Event, number>();
    for (const [workspace, own] of Map.groupBy(events, ({ source }) => sourceParts(source as SourceName).workspace)) {
      const written = await write(await stack.logs.of(workspace), own);
      for (const [index, event] of own.entries()) seqs.set(event, written[index] ?? 0);
    }
    return events.map((event) => seqs.get(event) ?? 0);
  };
  const owned = cleanup.move();
  return {
    stack,
    log,
    write: writeAll,
    async seed(events) {
      const seqs = await writeAll(events);
      await stack.caughtUp();
      return seqs;
    },
    at: (seq) => eventPosition(log.epoch, seq),
    endAt: (seq) => endPosition(log.epoch, seq),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
