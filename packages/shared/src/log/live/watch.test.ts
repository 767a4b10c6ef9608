import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { Watch } from "./watch.ts";

const atOnce = (goOn: () => void) => goOn();
const taken = (watch: Watch): number[] => {
  const all: number[] = [];
  for (let index = watch.next(); index !== undefined; index = watch.next()) all.push(index);
  return all;
};

it("queues what is offered while it is armed, each once", () => {
  const watch = new Watch([], atOnce);
  watch.offer(1);
  watch.arm();
  for (const index of [2, 2, 3]) watch.offer(index);
  expect(taken(watch)).toEqual([2, 3]);
  watch.offer(4);
  expect(taken(watch)).toEqual([4]);
  watch.disarm();
  watch.offer(5);
  expect(taken(watch)).toEqual([]);
});

it("a follower that takes nothing holds a bounded number, and is disarmed", () => {
  const watch = new Watch([], atOnce);
  watch.arm();
  for (let index = 0; index < 5_000; index++) watch.offer(index);
  expect(watch.isArmed).toBe(false);
  const first = taken(watch);
  expect(first).toEqual(Array.from({ length: first.length }, (_, index) => index));
  expect(first.length).toBeLessThan(2_000);
});

it("a follower that is always one behind holds no more for it", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  const heap = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const watch = new Watch([], atOnce);
  watch.arm();
  watch.offer(0);
  const before = heap();
  for (let index = 1; index < 3_000_000; index++) {
    watch.offer(index);
    if (watch.next() !== index - 1) throw new Error(`not ${index - 1}`);
  }
  expect(heap() - before).toBeLessThan(4 * 1024 * 1024);
  expect(taken(watch)).toEqual([2_999_999]);
});

it("a follower that waits is woken by what is offered, and once", async () => {
  let woken = 0;
  const watch = new Watch([], (goOn) => {
    woken++;
    goOn();
  });
  watch.arm();
  const changed = watch.changed();
  watch.offer(1);
  watch.offer(2);
  await changed;
  expect(woken).toBe(1);
});
