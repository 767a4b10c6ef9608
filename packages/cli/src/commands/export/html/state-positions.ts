import type { TapedeckEvent } from "@tapedeck/client";
import { maySetState } from "@tapedeck/web/file/data";

type Happened = Pick<TapedeckEvent, "position" | "kind">;

/** The most informative events come first: loops, then how steps ended, then the rest. */
const ranks = [/^loop\./, /\.(succeeded|failed|canceled|exited|ended|finished|described)$/, /./];

/**
 * At most so many positions, in order, at which the state may have changed: all of them, or the most informative ones.
 * The positions of the first and the last event are always included.
 */
export function statePositions(events: readonly Happened[], most: number): readonly string[] {
  const first = events.at(0);
  const last = events.at(-1);
  if (first === undefined || last === undefined) return [];
  const wanted = new Set<string>([last.position, ...(most > 1 ? [first.position] : [])]);
  let left = events.filter((event) => maySetState(event) && !wanted.has(event.position));
  for (const rank of ranks) {
    const ranked = left.filter(({ kind }) => rank.test(kind));
    for (const { position } of evenly(ranked, most - wanted.size)) wanted.add(position);
    left = left.filter(({ kind }) => !rank.test(kind));
  }
  return [...wanted].toSorted();
}

function evenly<Item>(items: readonly Item[], most: number): readonly Item[] {
  if (items.length <= most) return items;
  return Array.from({ length: most }, (_, index) => items[Math.floor((index * items.length) / most)] as Item);
}
