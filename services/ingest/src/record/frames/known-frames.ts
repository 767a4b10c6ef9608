import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampKey } from "@tapedeck/shared/time/timestamp";

/** The keys of one frame. */
type Known = readonly string[];

/**
 * The frames of one channel that the log already has, as a multiset: a repeated frame is dropped as often as it was
 * recorded. A frame is known by several hashes (of its bytes before and after masking), which include the upstream's own
 * time. Each of them uses the frame up.
 */
export class KnownFrames {
  /** A set only where frames share a key: a session may have a million frames, and a set takes 200 bytes. */
  readonly #byKey = new Map<string, Known | Set<Known>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /**
   * Adds a frame that was recorded from an earlier connection, which this connection may repeat. `timestamp` is the upstream's
   * own time. It also identifies the frame, for repeats whose bytes may differ.
   */
  addEarlier(hashes: readonly string[], timestamp?: Timestamp): void {
    this.#add(timestamp === undefined ? [...hashes] : [...hashes, keyOfTimestamp(timestamp)]);
  }

  /** Adds a frame that was recorded from this connection. The tap may push it again, with the same observation time. */
  addOfThis(hashes: readonly string[], at: Timestamp | undefined): void {
    this.#add(hashes.map((hash) => pushedKey(hash, at)));
  }

  /** Returns true if a frame with one of these hashes is known, and uses up one. */
  take(hashes: readonly string[], at: Timestamp, timestamp?: Timestamp): boolean {
    if (this.#size === 0) return false;
    if (hashes.some((hash) => this.#takeKey(pushedKey(hash, at)))) return true;
    if (hashes.some((hash) => this.#takeKey(hash))) return true;
    return timestamp !== undefined && this.#takeKey(keyOfTimestamp(timestamp));
  }

  /** `keys` is the frame's own array: it distinguishes the frame from one with equal keys. */
  #add(keys: Known): void {
    for (const key of keys) {
      const known = this.#byKey.get(key);
      if (known === undefined) this.#byKey.set(key, keys);
      else if (known instanceof Set) known.add(keys);
      else this.#byKey.set(key, new Set([known, keys]));
    }
    this.#size++;
  }

  #takeKey(key: string): boolean {
    const found = this.#byKey.get(key);
    const [known] = found instanceof Set ? found : [found];
    if (known === undefined) return false;
    for (const each of known) {
      const others = this.#byKey.get(each);
      if (others instanceof Set) others.delete(known);
      if (!(others instanceof Set) || others.size === 0) this.#byKey.delete(each);
    }
    this.#size--;
    return true;
  }
}

const pushedKey = (hash: string, at: Timestamp | undefined) => `${hash}@${timestampKey(at)}`;
const keyOfTimestamp = (timestamp: Timestamp) => `at ${timestampKey(timestamp)}`;
