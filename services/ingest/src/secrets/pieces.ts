import { tailOf } from "./continued-text.ts";
import type { MaskedBytes } from "./mask-bytes.ts";

/** A frame's part of a stream of output, masked. */
export type Piece = { readonly stream: string; readonly text: string };

const maxRecent = 16;

/** The open ends of streams of output, for their next pieces. Most streams leave nothing open. */
export class Tails {
  readonly #open = new Map<string, string>();
  #recent: readonly string[] = [];

  before(stream: string): string {
    return this.#open.get(stream) ?? "";
  }

  /** Takes in the stream's next piece, as it is recorded. `before`: the end before it, where that is of another stream. */
  took({ stream, text }: Piece, before = this.before(stream)): void {
    const tail = tailOf(before + text);
    if (tail === "") this.#open.delete(stream);
    else {
      this.#open.set(stream, tail);
      // Other tails hardly ever change the text after them.
      if (!/\*|^-----BEGIN/.test(tail)) return;
      this.#recent = [tail, ...this.#recent.filter((one) => one !== tail)].slice(0, maxRecent);
    }
  }

  /** The ends that any stream left open lately, the newest first. */
  get recent(): readonly string[] {
    return this.#recent;
  }

  /** At least one stream has left something open. */
  get isOpen(): boolean {
    return this.#open.size > 0;
  }

  /** The stream has ended. */
  end(stream: string): void {
    this.#open.delete(stream);
  }

  /** A new connection: no stream has anything open. The recent ends are still known. */
  reset(): void {
    this.#open.clear();
  }
}

/** `piece`: the frame's output, where it is a piece of a stream. */
export type MaskedFrame = MaskedBytes & { readonly piece?: Piece };
