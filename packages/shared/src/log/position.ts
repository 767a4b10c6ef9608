import type { FormerEpoch } from "./epoch.ts";

/** Where an event stands in the log: the log's epoch and the stream's sequence. Written "<epoch>-<sequence>". */
export type Position = { readonly epoch: string; readonly seq: number };

const written = /^([a-z0-9]{1,16})-(0|[1-9][0-9]{0,15})$/;

export function formatPosition({ epoch, seq }: Position): string {
  return `${epoch}-${seq}`;
}

/** Undefined when the text is not a position. */
export function parsePosition(text: string): Position | undefined {
  const match = written.exec(text);
  return match?.[1] === undefined ? undefined : { epoch: match[1], seq: Number(match[2]) };
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
  return formerEpochs.some((one) => one.epoch === position.epoch && position.seq <= one.lastSeq);
}
