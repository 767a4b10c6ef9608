import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { assertEverywhere } from "../apis/maintain/everywhere.ts";
import type { MoveProgress, ShardApi } from "../apis/shard-api.ts";
import { type MovingDeps, moveInTurn, shardNamed } from "./moving/move-in-turn.ts";
import type { MoveTurns } from "./moving/move-turns.ts";
import type { Turn } from "./moving/turn.ts";
import { homeShard } from "./settings.ts";
import type { Shard } from "./shard.ts";

export type SeveralShards = MovingDeps & {
  readonly turns: Pick<MoveTurns, "take">;
  /** It stays in home. */
  readonly homeWorkspace: string;
};

/** What admins of all workspaces see and do of several shards. */
export function severalShards(options: SeveralShards): ShardApi {
  const { shards, map, turns, homeWorkspace } = options;
  return {
    async list(caller) {
      assertEverywhere(caller);
      const entries = [[homeWorkspace, homeShard] as const, ...(await map.all())];
      const states = await Promise.all(shards.map(stateOf));
      return {
        items: shards.map(({ name }, index) => {
          const here = entries.filter(([, shard]) => shard === name).map(([workspace]) => workspace);
          return { name, state: states[index] ?? "", workspaces: [...new Set(here)].sort() };
        }),
      };
    },

    async move({ workspace, to: name }, context) {
      assertEverywhere(context);
      const to = shardNamed(shards, name);
      if (workspace === homeWorkspace) {
        throw invalidArgument(`"${workspace}" is the setting workspace, which stays in ${homeShard}`, "workspace");
      }
      const now = shardNamed(shards, await map.read(workspace));
      const turn = await turns.take();
      if (turn === undefined) {
        const text = "a workspace is being moved: wait for its end";
        throw new TapedeckError("limit_exceeded", text, {}, { retryAfter: 10 });
      }
      return inTurn(turn, moveInTurn({ workspace, from: now, to, context, turn }, options));
    },
  };
}

/** Counts the move until its end: a caller that leaves waits for what continues without it. */
async function* inTurn(turn: Turn, progress: AsyncIterable<MoveProgress>): AsyncGenerator<MoveProgress, void> {
  try {
    yield* progress;
  } finally {
    await turn[Symbol.asyncDispose]();
  }
}

async function stateOf({ readiness }: Shard): Promise<string> {
  const { checks } = await readiness();
  const failed = Object.entries(checks).find(([, answer]) => answer !== "ok");
  return failed === undefined ? "ok" : failed.join(": ");
}
