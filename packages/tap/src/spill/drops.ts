import type { Dropped } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { TapItem } from "../tap.ts";

type Count = Pick<TapItem, "connection" | "at"> & { readonly count: bigint; readonly bytes: bigint };

/** Counts the frames that a full spill drops until they are reported. */
export class Drops {
  readonly #byChannel = new Map<string, Count>();
  #total = 0n;

  /** All frames that were dropped, reported or not. */
  get total(): bigint {
    return this.#total;
  }

  /** Some are not reported yet. */
  get areOpen(): boolean {
    return this.#byChannel.size > 0;
  }

  count({ connection, at }: TapItem, channel: string, bytes: number): void {
    const before = this.#byChannel.get(channel);
    const [count, total] = [(before?.count ?? 0n) + 1n, (before?.bytes ?? 0n) + BigInt(bytes)];
    this.#byChannel.set(channel, { count, bytes: total, connection, at });
    this.#total++;
  }

  /** Gives one item for each channel, which are then reported. */
  take(): readonly TapItem[] {
    const items = [...this.#byChannel].map(([channel, { count, bytes, connection, at }]): TapItem => {
      const value: Dropped = { channel, count, bytes, reason: "spill_full" };
      return { connection, at, what: { $case: "dropped", value } };
    });
    this.#byChannel.clear();
    return items;
  }
}
