export type InventoryKind = "pods" | "images";

type Progress = {
  readonly had: boolean;
  readonly observed: boolean;
  readonly heldMs: number;
  readonly reported: boolean;
};

const fresh: Progress = { had: false, observed: false, heldMs: 0, reported: false };

/**
 * Everything disappears at once when a connection comes back: rkt answers so for a data directory that is not mounted.
 * It is not believed before a known pod or image is observed again (then it was nothing, or they went one by one), or
 * before observations have repeated it for `holdMs`. A host that had only pods, or only images, is judged by those
 * alone.
 */
export class Extinction {
  readonly #holdMs: number;
  #isAlive = true;
  readonly #progress: Record<InventoryKind, Progress> = { pods: fresh, images: fresh };

  constructor(holdMs: number) {
    this.#holdMs = holdMs;
  }

  connected(known: Readonly<Record<InventoryKind, boolean>>): void {
    this.#isAlive = !known.pods && !known.images;
    for (const kind of ["pods", "images"] as const) {
      this.#progress[kind] = { ...this.#progress[kind], had: known[kind], observed: false, reported: false };
    }
  }

  /** Takes in a list: how many entries, whether one was known before the connection, and ms since the list before it. */
  observed(kind: InventoryKind, { entries, knowsSome, ms }: { entries: number; knowsSome: boolean; ms: number }): void {
    const before = this.#progress[kind];
    this.#isAlive ||= knowsSome || (before.had && !before.observed && entries > 0);
    this.#progress[kind] = { ...before, observed: true, heldMs: this.#isAlive ? 0 : before.heldMs + ms };
  }

  verdict(kind: InventoryKind): "none" | "held" | "certain" {
    const { heldMs, reported } = this.#progress[kind];
    if (this.#isAlive || reported) return "none";
    return heldMs < this.#holdMs ? "held" : "certain";
  }

  /** Certain changes are recorded. */
  reported(kind: InventoryKind): void {
    this.#progress[kind] = { ...this.#progress[kind], heldMs: 0, reported: true };
  }
}
