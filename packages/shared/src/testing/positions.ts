import { endOf, offsetOf, type Sequence, sequenceOf } from "../log/offset.ts";
import { formatPosition, parsePosition } from "../log/position.ts";

/** Sequence of the message that a position's text points into; NaN when it is not a position. */
export function seqIn(text: string | undefined): Sequence {
  const position = parsePosition(text ?? "");
  return position === undefined ? Number.NaN : sequenceOf(position.offset);
}

/** The position of the event in a message, as text. */
export function eventPosition(epoch: string, seq: Sequence): string {
  return formatPosition({ epoch, offset: offsetOf(seq) });
}

/** The position after a whole message, as text: how far the log, its tables or a reader have come. */
export function endPosition(epoch: string, seq: Sequence): string {
  return formatPosition({ epoch, offset: endOf(seq) });
}
