import type { TapedeckEvent } from "@tapedeck/client";
import { maySetState } from "@tapedeck/web/file/data";

type Happened = Pick<TapedeckEvent, "position" | "kind">;

/** The most informative after loops: how steps ended, then the rest. */
const ranks = [/\.(succeeded|failed|canceled|exited|ended|finished|described)$/, /./];

/**
 * At most `max` positions, in order, at which the state may have changed: all of them, or the most informative ones. The
 * positions of the first and the last event are always included. A loop has both its start and its end, or none: the
 * page shows what changed between them. Failed loops come first.
 */
export function statePositions(events: readonly Happened[], max: number): readonly string[] {
  const first = events.at(0);
  const last = events.at(-1);
  if (first === undefined || last === undefined) return [];
  const chosen = new Set<string>([last.position, ...(max > 1 ? [first.position] : [])]);
  const loops = loopPositions(events);
  for (const failed of [true, false]) {
    const changes = loops
      .filter((loop) => loop.isFailed === failed)
      .map(({ positions }) => positions.filter((position) => !chosen.has(position)))
      .filter(({ length }) => length > 0);
    const longest = Math.max(1, ...changes.map(({ length }) => length));
    for (const positions of evenly(changes, Math.floor((max - chosen.size) / longest)))
      for (const position of positions) chosen.add(position);
  }
  const ofLoops = new Set(loops.flatMap(({ positions }) => positions));
  let left = events.filter(
    (event) => maySetState(event) && !chosen.has(event.position) && !ofLoops.has(event.position),
  );
  for (const rank of ranks) {
    const ranked = left.filter(({ kind }) => rank.test(kind));
    for (const { position } of evenly(ranked, max - chosen.size)) chosen.add(position);
    left = left.filter(({ kind }) => !rank.test(kind));
  }
  return [...chosen].toSorted();
}

type LoopPositions = { readonly positions: readonly string[]; readonly isFailed: boolean };

/** Where each loop began and ended; of one whose end was not seen, where it began. */
function loopPositions(events: readonly Happened[]): readonly LoopPositions[] {
  const found: LoopPositions[] = [];
  for (const { kind, position } of events) {
    if (kind === "loop.started") found.push({ positions: [position], isFailed: false });
    if (kind !== "loop.succeeded" && kind !== "loop.failed") continue;
    const open = found.at(-1)?.positions.length === 1 ? found.pop() : undefined;
    found.push({ positions: [...(open?.positions ?? []), position], isFailed: kind === "loop.failed" });
  }
  return found;
}

function evenly<Item>(items: readonly Item[], max: number): readonly Item[] {
  if (max <= 0) return [];
  if (items.length <= max) return items;
  return Array.from({ length: max }, (_, index) => items[Math.floor((index * items.length) / max)] as Item);
}
