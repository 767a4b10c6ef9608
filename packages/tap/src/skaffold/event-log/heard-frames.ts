import type { Moment } from "@tapedeck/shared/time/moment";

/**
 * What the streams have given, as a multiset of moments: Skaffold writes the same messages to its event log file at the end.
 * A message is known again by its own time, in nanoseconds and on its channel, and not by its bytes: text that is not
 * UTF-8 stands otherwise in the file (U+FFFD), and so may the order of a map. It grows with the process, but Skaffold itself
 * keeps each message whole for as long: this is some hundred bytes of each.
 */
export class HeardFrames {
  readonly #counts = new Map<string, number>();
  readonly #sizes = new Map<string, number>();

  /** Of them, how many the file has not shown. */
  get size(): number {
    let size = 0;
    for (const of of this.#sizes.values()) size += of;
    return size;
  }

  add(channel: string, moment: Moment): void {
    const key = keyOf(channel, moment);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#sizes.set(channel, (this.#sizes.get(channel) ?? 0) + 1);
  }

  has(channel: string, moment: Moment): boolean {
    return this.#counts.has(keyOf(channel, moment));
  }

  /** True if something was heard of the channel that the file has not shown. */
  hasOf(channel: string): boolean {
    return (this.#sizes.get(channel) ?? 0) > 0;
  }

  /** True if it was heard, which uses up one of its kind. */
  take(channel: string, moment: Moment): boolean {
    const key = keyOf(channel, moment);
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

function keyOf(channel: string, { seconds, nanos }: Moment): string {
  return `${channel}@${seconds}.${nanos}`;
}
