import type { VagrantResourceDetail } from "@tapedeck/proto/tapedeck/v1/event";

/**
 * Which target was removed last from a project and name, since a target that is made again there has another id. A
 * resumed recorder knows of those since the last description.
 */
export class ReplacedTargets {
  readonly #removed = new Map<string, string>();

  removed(detail: VagrantResourceDetail): void {
    if (detail.kind === "target") this.#removed.set(positionOf(detail), detail.id);
  }

  /** The id of the resource that this one replaces. */
  takeBy(detail: VagrantResourceDetail): string | undefined {
    const position = positionOf(detail);
    const replaced = this.#removed.get(position);
    this.#removed.delete(position);
    return replaced === detail.id ? undefined : replaced;
  }
}

/** What stays the same when a target is removed and made again. */
function positionOf({ kind, parent_id, name }: VagrantResourceDetail): string {
  return JSON.stringify([kind, parent_id, name]);
}
