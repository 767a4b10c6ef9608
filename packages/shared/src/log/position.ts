import type { FormerEpoch } from "./epoch.ts";
import {
  endOf,
  indexesPerMessage,
  indexOf,
  justBefore,
  largestSequence,
  type Offset,
  offsetOf,
  sequenceOf,
} from "./offset.ts";

/** Where an event stands: its log's epoch, and its offset in the log. */
export type Position = { readonly epoch: string; readonly offset: Offset };

/**
 * A position as text: how many digits the sequence has, the sequence, two digits of the index, "-" and the epoch, all
 * numbers in base 36. So "383600-t3k9x2" is the first event of message 10,482 ("836"). The text sorts byte by byte as the
 * log does, also among epochs: a restored log goes on with higher sequences. The SQL function `position_text` writes it too.
 */
export function formatPosition({ epoch, offset }: Position): string {
  const sequence = sequenceOf(offset).toString(36);
  return `${sequence.length}${sequence}${indexOf(offset).toString(36).padStart(2, "0")}-${epoch}`;
}

const written = /^([1-9])(0|[1-9a-z][0-9a-z]*)([0-9a-z]{2})-([a-z0-9]{1,16})$/;

/** Undefined when the text is not a position. */
export function parsePosition(text: string): Position | undefined {
  const [, length = "", digits = "", lastDigits = "", epoch = ""] = written.exec(text) ?? [];
  const sequence = Number.parseInt(digits, 36);
  const index = Number.parseInt(lastDigits, 36);
  const isWritten = digits.length === Number(length) && sequence <= largestSequence && index < indexesPerMessage;
  return isWritten ? { epoch, offset: offsetOf(sequence, index) } : undefined;
}

/** The position to read after, so that reading begins with this one; undefined when the text is not a position. */
export function positionBefore(text: string): string | undefined {
  const position = parsePosition(text);
  return position && formatPosition({ ...position, offset: justBefore(position.offset) });
}

/**
 * Whether a position belongs to this log: to its epoch, or to a former one up to the backup that it was restored
 * from. Positions in the lost end of a former epoch are foreign.
 */
export function belongsToLog(
  { epoch, formerEpochs }: { readonly epoch: string; readonly formerEpochs: readonly FormerEpoch[] },
  position: Position,
): boolean {
  if (position.epoch === epoch) return true;
  return formerEpochs.some((one) => one.epoch === position.epoch && position.offset <= endOf(one.lastSeq));
}
