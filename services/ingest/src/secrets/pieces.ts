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

  /** The stream's next piece, as it is recorded. */
  took({ stream, text }: Piece): void {
    const tail = tailOf(this.before(stream) + text);
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

  /** A new connection: its streams go on with nothing. What was open lately is still known. */
  reset(): void {
    this.#open.clear();
  }
}

/** `piece`: what it printed, when that is a piece of a stream of output. */
export type MaskedFrame = Masked & { readonly piece?: Piece };
