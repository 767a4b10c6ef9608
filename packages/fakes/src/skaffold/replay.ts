/**
 * Replays out of order, as the real server's can be: some of the log's newest events count as having happened after
 * the reader came, so they go out between and before older ones. Each part keeps its own order; count and set stay.
 */
export function mixedReplay(seed: number): (log: readonly Buffer[]) => readonly Buffer[] {
  const random = mulberry32(seed);
  return (log) => {
    const split = Math.floor(log.length * (0.3 + 0.6 * random()));
    const replayed = log.slice(0, split);
    const live = log.slice(split);
    const mixed: Buffer[] = [];
    for (let r = 0, l = 0; r < replayed.length || l < live.length; ) {
      const takeLive = l < live.length && (r >= replayed.length || random() < live.length / log.length);
      mixed.push((takeLive ? live[l++] : replayed[r++]) as Buffer);
    }
    return mixed;
  };
}

/** The well-known generator: small, and the same sequence for the same seed everywhere. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}
