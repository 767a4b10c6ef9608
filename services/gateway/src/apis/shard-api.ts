import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { CallContext, Caller } from "../call-context.ts";

export type ListedShard = {
  readonly name: string;
  /** `ok`, or what it lacks. */
  readonly state: string;
  /** Those that were called at least once. */
  readonly workspaces: readonly string[];
};

/** The steps as people see them. Writers wait from `fencing` until `switched`. */
export type MoveProgress = {
  readonly step: "copying" | "comparing" | "fencing" | "switched" | "removing" | "rebuilding";
  /** The number of messages, or of events where tables are rebuilt. */
  readonly all: number;
  readonly done: number;
};

/** The shards and their workspaces, for admins of all workspaces. Everything throws TapedeckError. */
export type ShardApi = {
  list(caller: Caller): Promise<{ readonly items: readonly ListedShard[] }>;
  /** Moves a workspace while it is written to; yields the progress. A move that was broken off continues. */
  move(
    move: { readonly workspace: string; readonly to: string },
    context: CallContext,
  ): Promise<AsyncIterable<MoveProgress>>;
};

/** The API of a Tapedeck with one log. */
export function noShards(): ShardApi {
  const refuse = async () => {
    throw invalidArgument("this Tapedeck has one log: the setting shards adds others, see docs/scale.md");
  };
  return { list: refuse, move: refuse };
}
