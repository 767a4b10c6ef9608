import { parentPort } from "node:worker_threads";
import { type Done, perform } from "./mask-tasks.ts";
import type { Answer, Request } from "./mask-thread.ts";

/** The other side of mask-thread.ts. */
parentPort?.on("message", ({ id, task }: Request) => {
  try {
    const done = perform(task);
    const answer: Answer = { id, done };
    parentPort?.postMessage(answer, buffersOf(done));
  } catch (cause) {
    const answer: Answer = { id, failed: cause instanceof Error ? cause.message : String(cause) };
    parentPort?.postMessage(answer);
  }
});

/** Given away instead of copied. */
function buffersOf({ bytes, entries }: Done): ArrayBuffer[] {
  const held = [bytes, entries?.raw].flatMap((one) => (one === undefined ? [] : [one.buffer]));
  return held.filter((one) => one instanceof ArrayBuffer);
}
