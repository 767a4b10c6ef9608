import { expect } from "vitest";
import { searchSeed } from "./searches.ts";

/** Random numbers that a failing run prints the seed of: TAPEDECK_TEST_SEED repeats it. */
export type Seeded = {
  readonly seed: number;
  /** A whole number from 0 to below the bound. */
  below(bound: number): number;
  shuffled<T>(items: readonly T[]): T[];
};

/** Each search of each test has numbers of its own, whichever other tests its process has run before. */
export function seeded(name: string): Seeded {
  console.log(`${name}: TAPEDECK_TEST_SEED=${searchSeed}`);
  let state = hashOf(`${searchSeed} ${expect.getState().currentTestName} ${name}`);
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (bound: number) => Math.floor(next() * bound);
  return {
    seed: searchSeed,
    below,
    shuffled: <T>(items: readonly T[]) => {
      const left = [...items];
      return items.map(() => left.splice(below(left.length), 1)[0] as T);
    },
  };
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}
