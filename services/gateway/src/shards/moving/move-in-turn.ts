import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { MoveProgress } from "../../apis/shard-api.ts";
import type { CallContext, Caller } from "../../call-context.ts";
import type { Shard } from "../shard.ts";
import type { ShardMap } from "../shard-map.ts";
import { finishMove, moveWorkspace } from "./move-workspace.ts";
import type { Turn } from "./turn.ts";

export type MovingDeps = {
  readonly shards: readonly Shard[];
  readonly map: ShardMap;
  readonly audit: (by: Pick<Caller, "who" | "kind" | "token">, workspace: string, about: AuditEntry["about"]) => void;
  /** Aborts when the gateway ends. */
  readonly closing: AbortSignal;
  /** A move has failed whose caller had left. */
  readonly failedAlone: (workspace: string, error: unknown) => void;
};

export type MoveInTurn = {
  readonly workspace: string;
  /** Where the map has it. */
  readonly from: Shard;
  readonly to: Shard;
  readonly context: CallContext;
  readonly turn: Turn;
};

/** Moves the workspace, or does what is left when it is there already. Ends with the turn, too. */
export function moveInTurn(
  { workspace, from, to, context: { signal, ...caller }, turn }: MoveInTurn,
  { shards, map, audit, closing, failedAlone }: MovingDeps,
): AsyncGenerator<MoveProgress, void> {
  const context = { ...caller, signal: AbortSignal.any([signal, turn.over]) };
  const onFinished = () => turn.remove(workspace);
  if (from === to) return restOf({ workspace, to, context, onFinished }, shards);
  const { who, kind, token } = caller;
  return moveWorkspace({
    workspace,
    from,
    to,
    map,
    context,
    onFinished,
    alone: {
      closing: AbortSignal.any([closing, turn.over]),
      failedAlone: (error: unknown) => failedAlone(workspace, error),
    },
    onClosing: () =>
      turn.add({ workspace, from: from.name, to: to.name, who, kind, ...(token !== undefined && { token }) }),
    onSwitched: () => audit(caller, workspace, { from: from.name, to: to.name }),
  });
}

type Rest = Pick<MoveInTurn, "workspace" | "to" | "context"> & { readonly onFinished: () => Promise<void> };

/** The workspace is there already: maybe the shard that it came from still has some of it. */
async function* restOf(
  { workspace, to, context, onFinished }: Rest,
  shards: readonly Shard[],
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
  if (sources > 0 || messages > 0n) yield* finishMove({ workspace, from, to, context, onFinished });
  else if (!context.signal.aborted) await onFinished();
}

/** @throws TapedeckError invalid_argument */
export function shardNamed(shards: readonly Shard[], name: string): Shard {
  const found = shards.find((shard) => shard.name === name);
  if (found !== undefined) return found;
  throw invalidArgument(`there is no shard "${name}": ${shards.map((shard) => shard.name).join(", ")}`, "to");
}
