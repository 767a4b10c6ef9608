import { nextSeed } from "./searches.ts";

/** Random numbers that a failing run prints the seed of: TAPEDECK_TEST_SEED repeats it. */
export type Seeded = {
  readonly seed: number;
  /** A whole number from 0 to below the bound. */
  below(bound: number): number;
  shuffled<T>(items: readonly T[]): T[];
};

export function seeded(name: string, seed = nextSeed()): Seeded {
  console.log(`${name}: TAPEDECK_TEST_SEED=${seed}`);
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (bound: number) => Math.floor(next() * bound);
  return {
    seed,
    below,
    shuffled: <T>(items: readonly T[]) => {
      const left = [...items];
      return items.map(() => left.splice(below(left.length), 1)[0] as T);
    },
  };
}
