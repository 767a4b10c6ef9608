import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { write } from "@tapedeck/query/testing/story";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { formatPosition } from "@tapedeck/shared/log/position";
import { connect } from "nats";
import { type Stack, startStack } from "./stack.ts";

/** A stack without taps: what its log says is up to the test. */
export type ToldStack = AsyncDisposable & {
  readonly deck: Stack;
  readonly log: Log;
  /** Writes events; resolves with their sequences. */
  write(events: readonly Event[]): Promise<number[]>;
  /** The same, and query has folded them. */
  tell(events: readonly Event[]): Promise<number[]>;
  /** The position of a sequence, as clients see it. */
  at(seq: number): string;
};

/** The callers' workspace is `acme`, as in the stories. */
export async function startToldStack(env: Readonly<Record<string, string>> = {}): Promise<ToldStack> {
  await using stack = new AsyncDisposableStack();
  const deck = stack.use(await startStack({ skaffold: [], env: { TAPEDECK_WORKSPACE: "acme", ...env } }));
  const connection = stack.adopt(await connect({ servers: deck.parts.nats.url }), (nc) => nc.close());
  const log = stack.use(await openLog(connection, { syncKnown: true }));
  const owned = stack.move();
  return {
    deck,
    log,
    write: (events) => write(log, events),
    async tell(events) {
      const seqs = await write(log, events);
      await deck.caughtUp();
      return seqs;
    },
    at: (seq) => formatPosition({ epoch: log.epoch, seq }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
