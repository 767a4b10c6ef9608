import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { assertEverywhere } from "../apis/maintain/everywhere.ts";
import type { MoveProgress, ShardApi } from "../apis/shard-api.ts";
import type { Caller } from "../call-context.ts";
import { finishMove, moveWorkspace } from "./moving/move-workspace.ts";
import { homeShard } from "./settings.ts";
import type { Shard } from "./shard.ts";
import type { ShardMap } from "./shard-map.ts";

export type SeveralShards = {
  readonly shards: readonly Shard[];
  readonly map: ShardMap;
  /** It stays in home. */
  readonly homeWorkspace: string;
  readonly audit: (by: Caller, workspace: string, about: AuditEntry["about"]) => void;
  /** Aborts when the gateway ends. */
  readonly closing: AbortSignal;
  /** A move has failed whose caller had left. */
  readonly failedAlone: (workspace: string, error: unknown) => void;
};

/** What admins of all workspaces see and do of several shards. */
export function severalShards({ shards, map, homeWorkspace, audit, closing, failedAlone }: SeveralShards): ShardApi {
  let isMoving = false;

  /** Counts the move until its end: whoever leaves waits for what goes on without a caller. */
  async function* oneAtATime(progress: AsyncIterable<MoveProgress>): AsyncGenerator<MoveProgress, void> {
    try {
      yield* progress;
    } finally {
      isMoving = false;
    }
  }

  const named = (name: string) => {
    const found = shards.find((shard) => shard.name === name);
    if (found !== undefined) return found;
    throw invalidArgument(`there is no shard "${name}": ${shards.map((shard) => shard.name).join(", ")}`, "to");
  };

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
      const to = named(name);
      if (workspace === homeWorkspace) {
        throw invalidArgument(`"${workspace}" is the setting workspace, which stays in ${homeShard}`, "workspace");
      }
      const now = named(await map.read(workspace));
      if (isMoving) {
        throw new TapedeckError(
          "limit_exceeded",
          "a workspace is being moved: wait for its end",
          {},
          { retryAfter: 10 },
        );
      }
      isMoving = true;
      if (now === to) return oneAtATime(restOf(workspace, to, { shards, context }));
      const onSwitched = () => audit(context, workspace, { from: now.name, to: to.name });
      const alone = { closing, failedAlone: (error: unknown) => failedAlone(workspace, error) };
      return oneAtATime(moveWorkspace({ workspace, from: now, to, map, context, alone, onSwitched }));
    },
  };
}

/** The workspace is there already: maybe the shard that it came from still has some of it. */
async function* restOf(
  workspace: string,
  to: Shard,
  { shards, context }: Pick<SeveralShards, "shards"> & { readonly context: Parameters<ShardApi["move"]>[1] },
): AsyncGenerator<MoveProgress, void> {
  let other = "";
  for await (const status of to.services.move({ workspace, step: 0, other: "" }, context.signal)) other = status.other;
  const from = shards.find(({ name }) => name === other);
  if (from === undefined) return;
  const { sources } = await from.query
    .listSources({ workspace, limit: 1 })
    .then(({ items }) => ({ sources: items.length }));
  let messages = 0n;
  for await (const status of from.services.move({ workspace, step: 0, other: "" }, context.signal))
    messages = status.messages;
  if (sources > 0 || messages > 0n) yield* finishMove({ workspace, from, to, context });
}

async function stateOf({ readiness }: Shard): Promise<string> {
  const { checks } = await readiness();
  const failed = Object.entries(checks).find(([, answer]) => answer !== "ok");
  return failed === undefined ? "ok" : failed.join(": ");
}
