import type { RemoveWorkspaceRequest, RemoveWorkspaceResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import { callerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { isNamePart } from "@tapedeck/shared/source";
import { notReady } from "../push-errors.ts";
import type { Stores } from "../recorder-options.ts";
import { beginRemoval, followRemoval } from "./begin-removal.ts";

/** tapedeck.v1.Maintain/RemoveWorkspace: begins the removal, or finds the one that has begun, and follows it to its end. */
export async function* removeWorkspaceCall(
  { workspace, who, kind: kindName, by }: RemoveWorkspaceRequest,
  stores: Stores | undefined,
  signal: AbortSignal,
): AsyncGenerator<RemoveWorkspaceResponse, void> {
  if (!isNamePart(workspace)) throw invalidArgument("no workspace", "workspace");
  const kind = callerKind.safeParse(kindName).data;
  if (kind === undefined) throw invalidArgument("no kind of caller", "kind");
  if (stores === undefined) throw notReady("the log is unavailable");
  await beginRemoval({ workspace, who, kind, by: by === "" ? undefined : by }, stores).catch((cause: unknown) => {
    throw cause instanceof TapedeckError ? cause : notReady("the log does not answer", cause);
  });
  for await (const { state, messages = 0 } of followRemoval(workspace, { nats: stores.nats, signal })) {
    yield { state, messages: BigInt(messages) };
  }
}
