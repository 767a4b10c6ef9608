import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { write } from "@tapedeck/query/testing/scenario";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { endPosition, eventPosition } from "@tapedeck/shared/testing/positions";
import { connect } from "nats";
import { type Stack, startStack } from "./stack.ts";

/** A stack without taps whose log the test writes. */
export type SeededStack = AsyncDisposable & {
  readonly stack: Stack;
  readonly log: Log;
  /** Writes events; resolves with their sequences. */
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
  const connection = cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
  const log = cleanup.use(await openLog(connection, { syncKnown: true, timeoutMs: 20_000 }));
  const owned = cleanup.move();
  return {
    stack,
    log,
    write: (events) => write(log, events),
    async seed(events) {
      const seqs = await write(log, events);
      await stack.caughtUp();
      return seqs;
    },
    at: (seq) => eventPosition(log.epoch, seq),
    endAt: (seq) => endPosition(log.epoch, seq),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
