declare const unit: unique symbol;

/** Number of a message in the log's stream: 1, 2, 3 … An offset is a different type for the compiler. */
export type Sequence = number & { readonly [unit]?: "sequence" };

/**
 * Place of an event in one log, as one number: the sequence of its message, and the event's index in the message.
 * Offsets compare as the log is ordered, so that rings, checkpoints, bookmarks and indexes need not compare pairs. Only
 * this file knows how they are made.
 */
export type Offset = number & { readonly [unit]: "offset" };

/** The most events of a message. With it, the largest sequence makes the largest safe integer. */
export const indexesPerMessage = 1_024;

/** The largest sequence of which every offset is an exact number. */
export const largestSequence: Sequence = 2 ** 43 - 1;

/** Before every event. */
export const logStart = 0 as Offset;

/** After every event. */
export const beyondAll = (2 ** 53 - 1) as Offset;

/** The offset of an event by its message and its index in the message. */
export function offsetOf(sequence: Sequence, index = 0): Offset {
  return (sequence * indexesPerMessage + index) as Offset;
}

/** The sequence of the message that holds the event. */
export function sequenceOf(offset: Offset): Sequence {
  return Math.floor(offset / indexesPerMessage);
}

/** The event's index in its message, from 0. */
export function indexOf(offset: Offset): number {
  return offset % indexesPerMessage;
}

/** Covers every event of the message. There is no message 0: its end is the log's start. */
export function endOf(sequence: Sequence): Offset {
  return sequence === 0 ? logStart : offsetOf(sequence, indexesPerMessage - 1);
}

/** An offset that was a plain number meanwhile: a column, or a field of a stored value. */
export function storedOffset(stored: number): Offset {
  return stored as Offset;
}

/** The offset after which reading begins with the event at the given one. */
export function justBefore(offset: Offset): Offset {
  return indexOf(offset) === 0
    ? endOf(Math.max(0, sequenceOf(offset) - 1))
    : offsetOf(sequenceOf(offset), indexOf(offset) - 1);
}

/** The offset after which the last `messages` messages up to `offset` are read. */
export function messagesBefore(offset: Offset, messages: number): Offset {
  return endOf(Math.max(0, sequenceOf(offset) - messages));
}

/** How many messages end after the message of one offset and up to that of the other. */
export function messagesBetween(after: Offset, upTo: Offset): number {
  return sequenceOf(upTo) - sequenceOf(after);
}

/** At most this many events stand after one offset and up to the other. */
export function maxEventsBetween(after: Offset, upTo: Offset): number {
  return Math.max(0, upTo - after);
}

/** The first message that may hold an event after the offset: the offset's own, unless it covers all of that. */
export function firstMessageAfter(offset: Offset): Sequence {
  const isWhole = offset === logStart || indexOf(offset) === indexesPerMessage - 1;
  return isWhole ? sequenceOf(offset) + 1 : sequenceOf(offset);
}

/** The later one of two offsets. */
export function laterOf(one: Offset, other: Offset): Offset {
  return one > other ? one : other;
}

/** The earlier one of two offsets. */
export function earlierOf(one: Offset, other: Offset): Offset {
  return one < other ? one : other;
}

/** Whether an event may stand after one offset and up to the other. */
export function mayHoldEvents(after: Offset, upTo: Offset): boolean {
  return after < upTo && firstMessageAfter(after) <= sequenceOf(upTo);
}
