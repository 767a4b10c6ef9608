import { hash } from "node:crypto";
import type { KnownJobs_Job } from "@tapedeck/proto/tapedeck/v1/event";

export type DigestMemory = Pick<KnownJobs_Job, "written" | "digests" | "digests_from">;

const digestSize = 16;

/** Digests of the recorded events in the window that is being filled, as far back as nothing is missing. */
export class DigestWindow {
  readonly #windowSize: number;
  #start: number;
  #end: number;
  #bytes: Buffer;

  constructor(from: Pick<DigestMemory, "written" | "digests"> | undefined, windowSize: number) {
    this.#windowSize = windowSize;
    this.#end = Number(from?.written ?? 0n);
    this.#bytes = Buffer.from(from?.digests ?? []);
    this.#start = this.#end - Math.floor(this.#bytes.length / digestSize);
  }

  /** The position of the next event. */
  get end(): number {
    return this.#end;
  }

  skipTo(index: number): void {
    if (index === this.#end) return;
    this.#end = index;
    this.#clear();
  }

  push(event: Uint8Array): void {
    this.pushSha256(hash("sha256", event, "buffer"));
  }

  pushSha256(sha256: Uint8Array): void {
    const at = (this.#end - this.#start) * digestSize;
    if (at + digestSize > this.#bytes.length) this.#bytes = this.#grown(at + digestSize);
    Buffer.from(sha256).copy(this.#bytes, at, 0, digestSize);
    this.#end += 1;
    if (this.#end % this.#windowSize === 0) this.#clear();
  }

  /** Also returns false if the event at the position is not known. */
  differs(index: number, event: Uint8Array): boolean {
    return this.differsFrom(index, hash("sha256", event, "buffer"));
  }

  /** Does the same by the event's hash. */
  differsFrom(index: number, sha256: Uint8Array): boolean {
    if (index < this.#start || index >= this.#end) return false;
    const at = (index - this.#start) * digestSize;
    return Buffer.compare(sha256.subarray(0, digestSize), this.#bytes.subarray(at, at + digestSize)) !== 0;
  }

  memory(): DigestMemory {
    return {
      written: BigInt(this.#end),
      digests: Buffer.from(this.#bytes.subarray(0, (this.#end - this.#start) * digestSize)),
      digests_from: BigInt(this.#start),
    };
  }

  #clear(): void {
    this.#start = this.#end;
    this.#bytes = Buffer.alloc(0);
  }

  #grown(size: number): Buffer {
    const larger = Buffer.alloc(Math.min(Math.max(size * 2, 16 * digestSize), this.#windowSize * digestSize));
    this.#bytes.copy(larger);
    return larger;
  }
}
