import { expect, it } from "vitest";
import { Turns } from "./turns.ts";

it("those who wait go on in order, a few in each turn of the event loop", async () => {
  const turns = new Turns();
  const wentOn: number[] = [];
  const inTurns: number[] = [];
  let before = 0;
  const all = Promise.all(Array.from({ length: 100 }, (_, n) => turns.next().then(() => void wentOn.push(n))));
  while (wentOn.length < 100) {
    await new Promise(setImmediate);
    inTurns.push(wentOn.length - before);
    before = wentOn.length;
  }
  await all;
  expect(wentOn).toEqual(Array.from({ length: 100 }, (_, n) => n));
  expect(Math.max(...inTurns)).toBeLessThanOrEqual(64);
  expect(inTurns.filter((count) => count > 0).length).toBeGreaterThan(1);
});
