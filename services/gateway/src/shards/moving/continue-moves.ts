import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { type MovingDeps, moveInTurn, shardNamed } from "./move-in-turn.ts";
import type { MoveTurns } from "./move-turns.ts";
import { isClosed } from "./move-workspace.ts";
import type { UnfinishedMove } from "./moves-entry.ts";
import type { Turn } from "./turn.ts";

/** How often moves without a gateway are searched for. */
const pollMs = 1_000;

/** How long the last call of a gateway that is gone may take to close the workspace. */
const lastCallMs = 5_000;

/** The most that a move waits to be tried again. */
const maxRetryMs = 30_000;

export type ContinueMoves = MovingDeps & {
  readonly turns: Pick<MoveTurns, "take">;
  readonly continued: (move: UnfinishedMove) => void;
};

/**
 * Takes moves to their end that were broken off while their workspace is closed, or before the old shard was cleared up:
 * their gateway is gone, or something failed. Whichever gateway is the first does. Runs until the gateway ends.
 */
export async function continueMoves(options: ContinueMoves): Promise<void> {
  const { turns, closing } = options;
  const waits = backoff(pollMs, maxRetryMs);
  while (!closing.aborted) {
    // While home's NATS is away, no gateway can move.
    const turn = await turns.take("if unfinished").catch(() => undefined);
    if (turn === undefined) {
      waits.reset();
      await delay(pollMs, closing);
      continue;
    }
    let isAllDone = true;
    try {
      for (const move of turn.unfinished) isAllDone = (await toItsEnd(move, turn, options)) && isAllDone;
    } finally {
      await turn[Symbol.asyncDispose]();
    }
    if (isAllDone) waits.reset();
    else await delay(waits.next(), closing);
  }
}

/** False when it has to be tried again. */
async function toItsEnd(move: UnfinishedMove, turn: Turn, options: ContinueMoves): Promise<boolean> {
  const { closing, failedAlone, continued } = options;
  try {
    await continueMove(move, turn, options);
    continued(move);
    return true;
  } catch (error) {
    if (!closing.aborted && !turn.over.aborted) failedAlone(move.workspace, error);
    return false;
  }
}

async function continueMove(move: UnfinishedMove, turn: Turn, options: ContinueMoves): Promise<void> {
  const { shards, map, closing } = options;
  const { workspace, who, kind, token } = move;
  const context = { workspace, who, kind, ...(token !== undefined && { token }), signal: closing };
  const [from, to] = [shardNamed(shards, move.from), shardNamed(shards, move.to)];
  const now = await map.read(workspace);
  const mayGoOn = now === to.name || (now === from.name && (await isClosedSoon({ workspace, from, to, context })));
  if (!mayGoOn) return await turn.remove(workspace);
  for await (const _ of moveInTurn({ workspace, from: shardNamed(shards, now), to, context, turn }, options));
  closing.throwIfAborted();
  turn.over.throwIfAborted();
}

/** It is not when its gateway ended just before, or when its operator has opened it again. */
async function isClosedSoon(move: Parameters<typeof isClosed>[0]): Promise<boolean> {
  if (await isClosed(move)) return true;
  await delay(lastCallMs, move.context.signal);
  return await isClosed(move);
}
