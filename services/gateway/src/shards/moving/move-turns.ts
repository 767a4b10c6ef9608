import type { MovesEntry, ReadMoves } from "./moves-entry.ts";
import { Turn } from "./turn.ts";

export type TurnTimes = {
  /** A turn that was not renewed for so long is lost. */
  readonly heldMs: number;
  readonly renewMs: number;
};

const defaultTimes: TurnTimes = { heldMs: 5_000, renewMs: 1_000 };

/**
 * Which gateway moves workspaces: one at a time. A turn spares movers each other, and protects nothing: each step of a
 * move bears a second mover.
 */
export class MoveTurns implements AsyncDisposable {
  readonly #entry: MovesEntry;
  readonly #times: TurnTimes;
  /** The revision that was read last, and since when it has been the last one. */
  #seen = { revision: -1, sinceMs: 0 };
  #held: Turn | undefined;
  #isOver = false;

  constructor(entry: MovesEntry, times: TurnTimes = defaultTimes) {
    this.#entry = entry;
    this.#times = times;
  }

  /** Undefined while another one has it, or has not been silent for long enough. Rejects when NATS can't be asked. */
  async take(when: "always" | "if unfinished" = "always"): Promise<Turn | undefined> {
    const read = await this.#entry.read();
    if (this.#isHeld(read)) return undefined;
    if (when === "if unfinished" && read.moves.unfinished.length === 0) return undefined;
    const turn = new Turn(this.#entry, read);
    if (!(await turn.begin(this.#times.renewMs))) return undefined;
    this.#held = turn;
    if (this.#isOver) await turn[Symbol.asyncDispose]();
    return turn;
  }

  /** Gives the turn back, so that another gateway need not wait for its time to run out. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#held?.[Symbol.asyncDispose]();
  }

  /** By the clock of this process, which need not agree with that of the other one. */
  #isHeld({ moves, revision }: ReadMoves): boolean {
    const now = performance.now();
    if (this.#seen.revision !== revision) this.#seen = { revision, sinceMs: now };
    return moves.turn !== undefined && now - this.#seen.sinceMs < this.#times.heldMs;
  }
}
