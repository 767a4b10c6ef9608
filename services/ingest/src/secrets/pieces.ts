import { tailOf } from "./continued-text.ts";
import type { Masked } from "./mask-bytes.ts";

/** A frame's part of a stream of output, as masked. */
export type Piece = { readonly stream: string; readonly text: string };

const mostRecent = 16;

/** What the last piece of each stream of output leaves open for the next one: nothing, most often. */
export class Tails {
  readonly #open = new Map<string, string>();
  #recent: readonly string[] = [];

  before(stream: string): string {
    return this.#open.get(stream) ?? "";
  }

  /** The stream's next piece, as it is recorded; after another end where that is known to be the one before it. */
  took({ stream, text }: Piece, before = this.before(stream)): void {
    const tail = tailOf(before + text);
    if (tail === "") this.#open.delete(stream);
    else {
      this.#open.set(stream, tail);
      // Of other tails next to none change what comes after them.
      if (!/\*|^-----BEGIN/.test(tail)) return;
      this.#recent = [tail, ...this.#recent.filter((one) => one !== tail)].slice(0, mostRecent);
    }
  }

  /** What was left open lately, by any stream, the newest first. */
  get recent(): readonly string[] {
    return this.#recent;
  }

  /** A stream goes on in what it has left open. */
  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Nothing of the stream comes any more. */
  end(stream: string): void {
    this.#open.delete(stream);
  }

  /** A new connection: its streams go on with nothing. What was open lately is still known. */
  reset(): void {
    this.#open.clear();
  }
}

/** `piece`: what it printed, when that is a piece of a stream of output. */
export type MaskedFrame = Masked & { readonly piece?: Piece };
