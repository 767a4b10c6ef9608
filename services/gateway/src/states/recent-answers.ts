import type { ReadState } from "../query-client.ts";

/** What an answer costs beside its rows. */
const entryBytes = 1_024;

export type RecentAnswersOptions = {
  /** Bytes of all that is held. */
  readonly maxBytes: number;
  /** How long an answer is held. */
  readonly maxAgeMs: number;
  /** A clock that never goes back, in ms. */
  readonly now?: () => number;
};

type HeldAnswer = { readonly answer: ReadState; readonly bytes: number; readonly at: number };

/** The newest answers about states, by their requests. The ones that were requested longest ago leave first. */
export class RecentAnswers {
  readonly #options: Required<RecentAnswersOptions>;
  readonly #held = new Map<string, HeldAnswer>();
  #bytes = 0;

  constructor({ now = () => performance.now(), ...options }: RecentAnswersOptions) {
    this.#options = { ...options, now };
  }

  /** The bytes of all that is held. */
  get bytes(): number {
    return this.#bytes;
  }

  get(request: string): ReadState | undefined {
    const held = this.#held.get(request);
    if (held === undefined) return undefined;
    if (this.#options.now() - held.at > this.#options.maxAgeMs) {
      this.drop(request);
      return undefined;
    }
    this.#held.delete(request);
    this.#held.set(request, held);
    return held.answer;
  }

  put(request: string, answer: ReadState): void {
    this.drop(request);
    const bytes = answer.rows.reduce(
      (sum, row) => sum + row.key.length + row.bytes.byteLength,
      request.length + entryBytes,
    );
    // One that does not fit must not drive out those that do.
    if (bytes > this.#options.maxBytes) return;
    this.#held.set(request, { answer, bytes, at: this.#options.now() });
    this.#bytes += bytes;
    for (const [oldest] of this.#held) {
      if (this.#bytes <= this.#options.maxBytes) return;
      this.drop(oldest);
    }
  }

  drop(request: string): void {
    this.#bytes -= this.#held.get(request)?.bytes ?? 0;
    this.#held.delete(request);
  }
}
