import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { getHeapStatistics } from "node:v8";
import { IdleCollection } from "../idle-collection.ts";

// A process that leaves 40 MiB of garbage in its old generation, and then rests or goes on working. Sends how much of its heap is
// in use: at once, and after each of its windows.

const windowMs = 200;
const isBusy = process.argv[2] === "busy";
let objects: unknown[] | undefined = Array.from({ length: 700_000 }, (_, index) => ({ index }));
// Twice, so that they are of the old generation.
for (let round = 0; round < 2; round++) Array.from({ length: 500_000 }, () => ({}));
process.send?.(objects.length > 0 && getHeapStatistics().used_heap_size);
objects = undefined;
using _collection = new IdleCollection(windowMs);
const report = setInterval(() => process.send?.(getHeapStatistics().used_heap_size), windowMs);
const over = once(process, "disconnect").then(() => clearInterval(report));
let isOver = false;
void over.then(() => {
  isOver = true;
});
// Allocates nothing, so that V8 itself has no reason to collect.
while (isBusy && !isOver) {
  const until = performance.now() + 20;
  while (performance.now() < until);
  await setImmediate();
}
await over;
