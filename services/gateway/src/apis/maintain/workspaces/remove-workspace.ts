import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { isNamePart, nameForm } from "@tapedeck/shared/source";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import type { CallContext } from "../../../call-context.ts";
import type { MaintainClient } from "../../../maintain-client.ts";
import type { QueryClient } from "../../../query-client.ts";

export type RemoveDeps = {
  readonly query: Pick<QueryClient, "workspaces">;
  readonly services: Pick<MaintainClient, "removeWorkspace">;
};

export type RemovalProgress = {
  readonly workspace: string;
  /** "done": nothing of it is answered any more. */
  readonly state: "requested" | "removing" | "done";
  /** How many messages its log had; 0 until that is known. */
  readonly messages: number;
};

/** How long a caller waits for the tables to be hidden. */
const hiddenMs = 5_000;

/** Starts the removal, and yields its progress. */
export async function beginRemoval(
  { query, services }: RemoveDeps,
  workspace: string,
  { who, kind, token = "", signal }: Pick<CallContext, "who" | "kind" | "token" | "signal">,
): Promise<AsyncIterable<RemovalProgress>> {
  if (!isNamePart(workspace)) throw invalidArgument(`a workspace's name is ${nameForm}`, "workspace");
  const responses = services.removeWorkspace({ workspace, who, kind, by: token }, signal)[Symbol.asyncIterator]();
  const first = await responses.next();
  return (async function* (): AsyncGenerator<RemovalProgress, void> {
    try {
      for (let next = first; next.done !== true; next = await responses.next()) {
        const { messages, state } = next.value;
        const progress = { workspace, messages: Number(messages) };
        if (state === "done") await areHidden(query, workspace, signal);
        yield { ...progress, state: state === "done" || state === "removing" ? state : "requested" };
      }
    } finally {
      await responses.return?.();
    }
  })();
}

/** Resolves when nothing is answered from the tables, or after a while: a query that is away hides them when it is back. */
async function areHidden({ workspaces }: RemoveDeps["query"], workspace: string, signal: AbortSignal): Promise<void> {
  const end = performance.now() + hiddenMs;
  const retry = backoff(10, 500);
  while (!signal.aborted && performance.now() < end) {
    const answer = await workspaces(workspace).catch(() => undefined);
    // A log that has begun since has few messages, and is another one: what hides the old rows has come first.
    if (answer === undefined || answer.items.every(({ removed, position }) => removed || position === "")) return;
    await delay(retry.next(), signal);
  }
}
