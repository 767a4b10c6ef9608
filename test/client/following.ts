import type { ConnectOptions } from "@tapedeck/client";
import { patientClient } from "@tapedeck/client/client";

/** The values of an iteration so far, read in the background as they come. */
export type Following<T> = {
  readonly got: readonly T[];
  /** Resolves at the end, rejects with the thrown error. */
  readonly ended: Promise<void>;
};

export function following<T>(items: AsyncIterable<T>): Following<T> {
  const got: T[] = [];
  const read = async () => {
    for await (const item of items) got.push(item);
  };
  const ended = read();
  ended.catch(() => {}); // the awaiting caller gets the error
  return { got, ended };
}

/** Like `connect`, but with short delays between retries. */
export const impatientClient = (options: ConnectOptions) =>
  patientClient(options, { backoff: { first: 5, max: 100 }, quietMs: 15_000 });
