import type { Timestamp } from "@tapedeck/shared/time/timestamp";

/**
 * The messages that the streams have delivered, as a multiset of moments. Skaffold writes the same messages to its event log
 * file at its end. A message is recognised by its channel and its own time in nanoseconds, and not by its bytes: in the
 * file, text that is not UTF-8 has U+FFFD, and a map may have another order. The set grows with the process by some hundred
 * bytes for each message, while Skaffold itself keeps each message whole.
 */
export class ReceivedFrames {
  readonly #counts = new Map<string, number>();
  readonly #sizes = new Map<string, number>();

  /** The number of messages that were not found in the file yet. */
  get size(): number {
    let size = 0;
    for (const ofChannel of this.#sizes.values()) size += ofChannel;
    return size;
  }

  add(channel: string, timestamp: Timestamp): void {
    const key = keyOf(channel, timestamp);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#sizes.set(channel, (this.#sizes.get(channel) ?? 0) + 1);
  }

  has(channel: string, timestamp: Timestamp): boolean {
    return this.#counts.has(keyOf(channel, timestamp));
  }

  /** True if messages of the channel were not found in the file yet. */
  hasOf(channel: string): boolean {
    return (this.#sizes.get(channel) ?? 0) > 0;
  }

  /** True if the message was received. Removes one message of this time. */
  take(channel: string, timestamp: Timestamp): boolean {
    const key = keyOf(channel, timestamp);
    const count = this.#counts.get(key);
    if (count === undefined) return false;
    if (count === 1) this.#counts.delete(key);
    else this.#counts.set(key, count - 1);
    this.#sizes.set(channel, (this.#sizes.get(channel) ?? 0) - 1);
    return true;
  }

  clear(): void {
    this.#counts.clear();
    this.#sizes.clear();
  }
}

function keyOf(channel: string, { seconds, nanos }: Timestamp): string {
  return `${channel}@${seconds}.${nanos}`;
}
