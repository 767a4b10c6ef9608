import { type Loss, TapedeckError } from "../errors/errors.ts";
import { endOf, justBefore, type Offset, offsetOf, type Sequence } from "./offset.ts";
import { formatPosition } from "./position.ts";

/** The log does not have, or can't read, the events after a position. `earliest`: reading can go on after it. */
export class OutOfRangeError extends TapedeckError {
  override readonly name = "OutOfRangeError";

  constructor(message: string, details: { readonly loss: Loss; readonly earliest: string; readonly field?: string }) {
    super("out_of_range", message, details);
  }
}

/** A limit of the stream has dropped what follows a position. `first`: the first message that the log still has. */
export function noLongerRetained(epoch: string, after: Offset, first: Sequence, field?: string): OutOfRangeError {
  const position = formatPosition({ epoch, offset: after });
  const earliest = formatPosition({ epoch, offset: justBefore(offsetOf(first)) });
  const message = `position ${position} is no longer available: continue after ${earliest}; earlier events are lost`;
  return new OutOfRangeError(message, { loss: "dropped", earliest, ...(field !== undefined && { field }) });
}

/** The nats-server has lost a file of its store while it runs. `next`: the first message behind it that can be read. */
export function unreadable(epoch: string, after: Offset, next: Sequence): OutOfRangeError {
  const position = formatPosition({ epoch, offset: after });
  const earliest = formatPosition({ epoch, offset: justBefore(offsetOf(next)) });
  const message = `nats-server can't read the events after position ${position}: a file of its store is missing or damaged. Bring the file back and restart nats-server, or continue after ${earliest}`;
  return new OutOfRangeError(message, { loss: "unreadable", earliest });
}

/** The log was damaged. Everything that it still has up to the end of the hole was delivered. */
export function lostInHole(
  epoch: string,
  { first, last }: { readonly first: Sequence; readonly last: Sequence },
): OutOfRangeError {
  const position = formatPosition({ epoch, offset: endOf(first - 1) });
  const earliest = formatPosition({ epoch, offset: endOf(last) });
  const message = `the log has lost events after position ${position}, because its files were damaged: continue after ${earliest}`;
  return new OutOfRangeError(message, { loss: "lost", earliest });
}
