import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { delay } from "@tapedeck/shared/sync/delay";
import { ulid } from "ulid";
import type { Moves, MovesEntry, ReadMoves, UnfinishedMove } from "./moves-entry.ts";

/** One gateway's turn to move workspaces. It is renewed until it is released or lost. */
export class Turn implements AsyncDisposable {
  readonly #entry: MovesEntry;
  readonly #id = ulid();
  readonly #over = new AbortController();
  #unfinished: readonly UnfinishedMove[];
  #revision: number;
  /** Each write names the revision of the one before, so they follow each other. */
  #writing: Promise<void> = Promise.resolve();

  /** `read`: the entry as it is without this turn. */
  constructor(entry: MovesEntry, { moves, revision }: ReadMoves) {
    this.#entry = entry;
    this.#unfinished = moves.unfinished;
    this.#revision = revision;
  }

  /** Aborts when the turn was released, or another gateway has it. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  get unfinished(): readonly UnfinishedMove[] {
    return this.#unfinished;
  }

  /** False when another one was faster. Rejects when that is not known. */
  async begin(renewMs: number): Promise<boolean> {
    await this.#write();
    if (this.over.aborted) return false;
    void this.#keep(renewMs);
    return true;
  }

  /** Before the workspace is closed: from here on another gateway continues an interrupted move. */
  async add(move: UnfinishedMove): Promise<void> {
    await this.#set([...this.#others(move.workspace), move]);
  }

  /** Nothing of the move is left. */
  async remove(workspace: string): Promise<void> {
    await this.#set(this.#others(workspace));
  }

  /** Without it others have to wait until its time has run out. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.over.aborted) return;
    this.#over.abort();
    await this.#writing.catch(() => {});
    await this.#entry.write({ unfinished: this.#unfinished }, this.#revision).catch(() => {});
  }

  #others(workspace: string): readonly UnfinishedMove[] {
    return this.#unfinished.filter((move) => move.workspace !== workspace);
  }

  async #set(unfinished: readonly UnfinishedMove[]): Promise<void> {
    this.over.throwIfAborted();
    this.#unfinished = unfinished;
    await this.#write();
    this.over.throwIfAborted();
  }

  async #keep(renewMs: number): Promise<void> {
    while (!this.over.aborted) {
      await delay(renewMs, this.over);
      // While NATS is away no other gateway can take it either.
      if (!this.over.aborted) await this.#write().catch(() => {});
    }
  }

  #write(): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#writeNow());
    return this.#writing;
  }

  /** A write whose answer was lost has moved the revision on without our knowing. */
  async #writeNow(): Promise<void> {
    const moves: Moves = { turn: this.#id, unfinished: this.#unfinished };
    for (;;) {
      if (this.over.aborted) return;
      const written = await this.#entry.write(moves, this.#revision);
      if (written !== undefined) {
        this.#revision = written;
        return;
      }
      const now = await this.#entry.read();
      if (now.moves.turn !== this.#id) {
        this.#over.abort(new TapedeckError("not_ready", "another gateway moves workspaces: try again in a moment"));
        return;
      }
      this.#revision = now.revision;
    }
  }
}
