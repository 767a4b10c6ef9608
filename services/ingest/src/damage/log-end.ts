import { type Log, LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { endOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { LogEnds } from "./ends.ts";

/**
 * A log that ends before a position that was given already would give that one again.
 * @throws LogUnusableError then, with what to do. Rejects otherwise when NATS can't be asked
 */
export async function assertLogEnd(
  { epoch, reader }: Pick<Log, "epoch" | "reader">,
  ends: Pick<LogEnds, "lastSeq">,
): Promise<void> {
  const given = await ends.lastSeq();
  const { lastOffset } = await reader.bounds();
  if (sequenceOf(lastOffset) >= given) return;
  const [end, last] = [lastOffset, endOf(given)].map((offset) => formatPosition({ epoch, offset }));
  throw new LogUnusableError(
    `the log ends at position ${end}, but positions up to ${last} were given: it has lost events. Bring a backup back with \`tapedeck restore\`, or continue with what is left, under new positions, with \`tapedeck new-epoch\`.`,
  );
}
