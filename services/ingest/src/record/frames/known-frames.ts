import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampKey } from "@tapedeck/shared/time/timestamp";

/**
 * The frames of one channel that the log already has, as a multiset: a repeated frame is dropped as often as it was
 * recorded. The key is the SHA-256 of the bytes as recorded, which include the upstream's own time.
 */
export class KnownFrames {
  readonly #counts = new Map<string, number>();
  readonly #shasByMoment = new Map<string, string[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /**
   * Adds a frame that was recorded from an earlier connection, which this connection may repeat. `moment` is the upstream's
   * own time. It also identifies the frame, for repeats whose bytes may differ.
   */
  addEarlier(sha: string, moment?: Timestamp): void {
    this.#add(sha);
    if (moment === undefined) return;
    const key = timestampKey(moment);
    this.#shasByMoment.set(key, [...(this.#shasByMoment.get(key) ?? []), sha]);
  }

  /** Adds a frame that was recorded from this connection. The tap may push it again, with the same observation time. */
  addOfThis(sha: string, at: Timestamp | undefined): void {
    this.#add(pushedKey(sha, at));
  }

  /** Returns true if the frame is known, and uses up one of its kind. */
  take(sha: string, at: Timestamp, moment?: Timestamp): boolean {
    if (this.#size === 0) return false;
    return this.#takeKey(pushedKey(sha, at)) || this.#takeKey(sha) || this.#takeMoment(moment);
  }

  #add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#size++;
  }

  #takeKey(key: string): boolean {
    const count = this.#counts.get(key);
    if (count === undefined) return false;
    if (count === 1) this.#counts.delete(key);
    else this.#counts.set(key, count - 1);
    this.#size--;
    return true;
  }

  #takeMoment(moment: Timestamp | undefined): boolean {
    if (this.#shasByMoment.size === 0) return false;
    return (this.#shasByMoment.get(timestampKey(moment)) ?? []).some((sha) => this.#takeKey(sha));
  }
}

const pushedKey = (sha: string, at: Timestamp | undefined) => `${sha}@${timestampKey(at)}`;
