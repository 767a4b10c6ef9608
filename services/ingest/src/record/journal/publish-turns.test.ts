import { expect, it } from "vitest";
import { PublishTurns } from "./publish-turns.ts";

/** A clock that only waiting moves on, and how long each turn was waited for. */
function harness() {
  let now = 1_000;
  const waits: number[] = [];
  const after = (ms: number, run: () => void) => {
    waits.push(ms);
    now += ms;
    setImmediate(run);
  };
  const turns = new PublishTurns({ now: () => now, after });
  return {
    waits,
    /** Takes so many turns, one after the other, for so many writers. Something else goes on in between. */
    async take(count: number, { writers = 1, elsewhereMs = 0 } = {}) {
      for (let turn = 0; turn < count; turn++) {
        now += elsewhereMs;
        await Promise.all(Array.from({ length: writers }, () => turns.next()));
      }
    },
  };
}

const of = (count: number, ms: number) => Array.from({ length: count }, () => ms);

it("a message that comes alone waits for nothing, also after many others", async () => {
  const { take, waits } = harness();
  await take(1);
  expect(waits).toEqual([0]);
  await take(20);
  waits.length = 0;
  await take(20, { elsewhereMs: 10 });
  expect(waits).toEqual(of(20, 0));
});

it("turns are 2 ms apart, and 4 ms while there are 8 messages in 64 ms", async () => {
  const { take, waits } = harness();
  await take(20);
  expect(waits).toEqual([0, ...of(7, 2), ...of(12, 4)]);
  // From four in 64 ms there is no company to expect.
  await take(20, { elsewhereMs: 20 });
  waits.length = 0;
  await take(2);
  expect(waits).toEqual([2, 2]);
});

it("messages of several writers count together, and share a turn", async () => {
  const { take, waits } = harness();
  await take(4, { writers: 4 });
  expect(waits).toEqual([0, 2, 4, 4]);
});
