import { writeSync } from "node:fs";

/** How long a full pipe is waited for. While it stays full after that, lines are dropped at once, as nothing may hold the event loop. */
const maxWaitMs = 1_000;
const pauseMs = 10;

/**
 * Writes lines to a file descriptor, at once. A line that can't be written (a full disk, a reader that is gone) throws
 * nothing: it is dropped, and the next one that can be written comes after a line that says how many are missing.
 */
export class LogOutput {
  readonly #fd: number;
  readonly #missing: (lines: number) => string;
  #dropped = 0;
  #isCut = false;

  /** @param missing the line that says how many were dropped */
  constructor(fd: number, missing: (lines: number) => string) {
    this.#fd = fd;
    this.#missing = missing;
  }

  write(line: string): void {
    const before = this.#dropped === 0 ? "" : this.#missing(this.#dropped);
    const isWritten = this.#writeAll(Buffer.from(`${this.#isCut ? "\n" : ""}${before}${line}`));
    this.#dropped = isWritten ? 0 : this.#dropped + 1;
  }

  #writeAll(bytes: Buffer): boolean {
    const until = performance.now() + (this.#dropped === 0 ? maxWaitMs : 0);
    for (let done = 0; done < bytes.length; ) {
      try {
        done += writeSync(this.#fd, bytes, done);
      } catch (error) {
        const isFull = (error as NodeJS.ErrnoException).code === "EAGAIN";
        if (isFull && performance.now() < until) {
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
          continue;
        }
        this.#isCut ||= done > 0;
        return false;
      }
    }
    this.#isCut = false;
    return true;
  }
}
