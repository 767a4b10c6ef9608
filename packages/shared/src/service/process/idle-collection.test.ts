import { fork } from "node:child_process";
import { on } from "node:events";
import { expect, it } from "vitest";

/** How much of its heap a process uses, in MiB: with its garbage, and after each window until `isEnough`. */
async function heapOf(mode: "at rest" | "busy", isEnough: (heap: readonly number[]) => boolean) {
  const child = fork(new URL("testing/idle-process.ts", import.meta.url), [mode], { execArgv: [] });
  const heap: number[] = [];
  for await (const [bytes] of on(child, "message")) {
    heap.push(Math.round(bytes / 2 ** 20));
    if (isEnough(heap)) break;
  }
  child.disconnect();
  return heap;
}

it("garbage is collected once a process is at rest, and left while it works", async () => {
  const rested = await heapOf("at rest", (heap) => (heap.at(-1) ?? 0) < 15);
  const worked = await heapOf("busy", (heap) => heap.length > 5);
  expect(rested[0]).toBeGreaterThan(30);
  expect(Math.min(...worked)).toBeGreaterThan(30);
});
