import type { EraseRequest, EraseResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { endOf } from "@tapedeck/shared/log/offset";
import { parseSourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { Store } from "../recorder-options.ts";
import { eraseSession, findIn } from "./erase-session.ts";

/** The interval of reports on how many are gone. */
const tellMs = 200;

/** tapedeck.v1.Maintain/Erase: what is to go, and then how much of it is gone, until all is. */
export async function* eraseCall(
  { source: name, session, after_sequence }: EraseRequest,
  store: Store | undefined,
  signal: AbortSignal,
): AsyncGenerator<EraseResponse, void> {
  const source = parseSourceName(name);
  if (source === undefined) throw invalidArgument("no source", "source");
  if (store === undefined) throw new TapedeckError("not_ready", "the log is away: try again in a moment");
  const { log, nats } = store;
  const over = new AbortController();
  const deps = { nats, log, signal: AbortSignal.any([signal, over.signal]) };
  const found = await findIn({ source, session, afterOffset: endOf(Number(after_sequence)) }, deps);
  const count = found.messages.reduce((sum, { events }) => sum + events, 0);
  if (count === 0) {
    if (found.marked) throw invalidArgument(`session ${session} has already been erased`, "session");
    throw new TapedeckError("unknown_session", `there is no session ${session}`, { field: "session" });
  }
  if (found.goesOn) {
    const message = `session ${session} is still running: end it first, or it would be recorded again`;
    throw invalidArgument(message, "session");
  }
  const events = BigInt(count);
  let removed = 0n;
  yield { events, removed };
  try {
    const erasing = eraseSession(found, deps, (gone) => {
      removed = BigInt(gone);
    });
    for (let isOver = false; !isOver; ) {
      isOver = await Promise.race([erasing.then(() => true), delay(tellMs, deps.signal).then(() => false)]);
      if (signal.aborted) return;
      yield { events, removed };
    }
  } finally {
    over.abort();
  }
}
