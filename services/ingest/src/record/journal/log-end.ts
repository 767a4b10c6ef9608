import { type Log, LogUnusableError } from "@tapedeck/shared/log/jetstream";
import type { KnownEnd } from "@tapedeck/shared/log/known-ends";
import { endOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { LogEnds } from "./ends.ts";

/**
 * A log of another epoch than all that is known beside it has taken the place of the one that events were recorded in.
 * @throws LogUnusableError then, with what to do
 */
export function assertSameLog({ epoch, reader }: Pick<Log, "epoch" | "reader">, known: readonly KnownEnd[]): void {
  const isOurs = (one: KnownEnd) =>
    one.epoch === epoch || reader.formerEpochs.some((former) => former.epoch === one.epoch);
  const foreign = known.find((one) => !isOurs(one));
  if (foreign === undefined || known.some(isOurs)) return;
  const last = formatPosition({ epoch: foreign.epoch, offset: endOf(foreign.seq) });
  throw new LogUnusableError(
    `the log (epoch ${epoch}) is not the one in which events up to position ${last} were recorded. Restore that one with \`tapedeck restore\`, or continue with this one, under new positions, with \`tapedeck new-epoch\`.`,
  );
}

/**
 * A log that ends before a position that was given already would give that one again.
 * @throws LogUnusableError then, with what to do. Rejects otherwise when NATS can't be asked
 */
export async function assertLogEnd(
  { epoch, reader }: Pick<Log, "epoch" | "reader">,
  ends: Pick<LogEnds, "lastSeq">,
): Promise<void> {
  const lastSeq = await ends.lastSeq();
  const { lastOffset } = await reader.bounds();
  if (sequenceOf(lastOffset) >= lastSeq) return;
  const [end, last] = [lastOffset, endOf(lastSeq)].map((offset) => formatPosition({ epoch, offset }));
  throw new LogUnusableError(
    `the log ends at position ${end}, but positions up to ${last} were assigned: it has lost events. Restore a backup with \`tapedeck restore\`, or continue with what is left, under new positions, with \`tapedeck new-epoch\`.`,
  );
}
