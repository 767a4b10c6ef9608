import { parentPort } from "node:worker_threads";
import { type MaskResult, perform } from "./mask-tasks.ts";
import type { MaskAnswer, MaskRequest } from "./mask-thread.ts";

/** The other side of mask-thread.ts. */
parentPort?.on("message", ({ id, task }: MaskRequest) => {
  try {
    const done = perform(task);
    const answer: MaskAnswer = { id, done };
    parentPort?.postMessage(answer, buffersOf(done));
  } catch (cause) {
    const answer: MaskAnswer = { id, failed: cause instanceof Error ? cause.message : String(cause) };
    parentPort?.postMessage(answer);
  }
});

/** Buffers to transfer instead of copying them. */
function buffersOf({ bytes, entries }: MaskResult): ArrayBuffer[] {
  const held = [bytes, entries?.raw].flatMap((one) => (one === undefined ? [] : [one.buffer]));
  return held.filter((one) => one instanceof ArrayBuffer);
}
