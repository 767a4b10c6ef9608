import { PassThrough } from "node:stream";
import type { ProgressTo } from "../progress.ts";

/** A pipe in place of stderr, and a clock on which so many ms pass with each look. */
export function progressPipe(stepMs: number): Required<ProgressTo> & { readonly lines: () => string[] } {
  const to = Object.assign(new PassThrough(), { isTTY: false });
  let text = "";
  to.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  let time = 0;
  const now = () => {
    time += stepMs;
    return time;
  };
  return { to: to as unknown as NodeJS.WriteStream, now, lines: () => text.split("\n").slice(0, -1) };
}
