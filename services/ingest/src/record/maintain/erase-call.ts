import type { EraseRequest, EraseResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import { callerKind } from "@tapedeck/shared/audit/caller-kind";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { endOf } from "@tapedeck/shared/log/offset";
import { parseSourceName } from "@tapedeck/shared/source";
import { notReady } from "../push-errors.ts";
import type { Store } from "../recorder-options.ts";
import { beginErasure, followErasure } from "./erasures.ts";

/** tapedeck.v1.Maintain/Erase: begins the erasure, or finds the one that has begun, and says how far it is until its end. */
export async function* eraseCall(
  { source: name, session, after_sequence, workspace, who, kind: kindName, by }: EraseRequest,
  store: Store | undefined,
  signal: AbortSignal,
): AsyncGenerator<EraseResponse, void> {
  const source = name === "" ? undefined : parseSourceName(name);
  if (name !== "" && source === undefined) throw invalidArgument("no source", "source");
  if (workspace === "") throw invalidArgument("no workspace", "workspace");
  const kind = callerKind.safeParse(kindName).data;
  if (kind === undefined) throw invalidArgument("no kind of caller", "kind");
  if (store === undefined) throw notReady("the log is unavailable");
  const deps = { nats: store.nats, log: store.log, signal };
  const afterOffset = endOf(Number(after_sequence));
  // What has begun goes on, whether or not the caller stays.
  const erasure = await beginErasure(
    { session, workspace, source, afterOffset, who, kind, ...(by !== "" && { by }) },
    deps,
  ).catch((cause: unknown) => {
    // NATS did not answer in time. Asked again, the caller hears of what may have begun.
    throw cause instanceof TapedeckError ? cause : notReady("the log does not answer", cause);
  });
  for await (const { events, removed, state } of followErasure(erasure, deps)) {
    yield {
      source: erasure.source,
      state,
      events: events === undefined ? undefined : BigInt(events),
      removed: BigInt(removed),
    };
  }
}
