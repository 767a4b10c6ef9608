import { expect, it } from "vitest";
import { Shift } from "./shift.ts";

/** Takes a millisecond of time, however slow the machine is. */
const piece = () => {
  for (const start = performance.now(); performance.now() - start < 1; );
};

it("many who work at the same time let others in between, and all come to their end", async () => {
  const shift = new Shift();
  let [pieces, done] = [0, 0];
  const work = async () => {
    for (let count = 0; count < 20; count++) {
      piece();
      pieces++;
      if (shift.isOver) await shift.next();
    }
    done++;
  };
  const all = Promise.all([work(), work(), work(), work()]);
  const inTurns: number[] = [];
  for (let before = 0; done < 4; before = pieces) {
    await new Promise(setImmediate);
    inTurns.push(pieces - before);
  }
  await all;
  expect(pieces).toBe(80);
  expect(inTurns.length).toBeGreaterThan(4);
  expect(Math.max(...inTurns)).toBeLessThan(20);
});
