import type { EraseRequest, EraseResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import { callerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { endOf } from "@tapedeck/shared/log/offset";
import { isNamePart, parseSourceName } from "@tapedeck/shared/source";
import { notReady } from "../push-errors.ts";
import type { Store, Stores } from "../recorder-options.ts";
import { beginErasure, followErasure } from "./erasures.ts";

/** tapedeck.v1.Maintain/Erase: begins the erasure, or finds the one that has begun, and says how far it is until its end. */
export async function* eraseCall(
  { source: name, session, after_sequence, workspace, who, kind: kindName, by }: EraseRequest,
  stores: Stores | undefined,
  signal: AbortSignal,
): AsyncGenerator<EraseResponse, void> {
  const source = name === "" ? undefined : parseSourceName(name);
  if (name !== "" && source === undefined) throw invalidArgument("no source", "source");
  if (!isNamePart(workspace)) throw invalidArgument("no workspace", "workspace");
  const kind = callerKind.safeParse(kindName).data;
  if (kind === undefined) throw invalidArgument("no kind of caller", "kind");
  const deps = { ...(await storeToErase(workspace, stores)), signal };
  const afterOffset = endOf(Number(after_sequence));
  // What has begun goes on, whether or not the caller stays.
  const erasure = await beginErasure({ session, source, afterOffset, who, kind, ...(by !== "" && { by }) }, deps).catch(
    (cause: unknown) => {
      // NATS did not answer in time. Asked again, the caller hears of what may have begun.
      throw cause instanceof TapedeckError ? cause : notReady("the log does not answer", cause);
    },
  );
  for await (const { events, removed, state } of followErasure(erasure, deps)) {
    yield {
      source: erasure.source,
      state,
      events: events === undefined ? undefined : BigInt(events),
      removed: BigInt(removed),
    };
  }
}

/** @throws TapedeckError not_ready */
export async function storeToErase(workspace: string, stores: Stores | undefined): Promise<Store> {
  if (stores === undefined) throw notReady("the log is unavailable");
  return await stores.of(workspace).catch((cause: unknown) => {
    throw notReady(cause instanceof LogUnusableError ? cause.message : "the log is unavailable", cause);
  });
}
