import { PassThrough } from "node:stream";
import type { ProgressTo } from "../progress.ts";

type TestProgress = Required<ProgressTo> & { readonly text: () => string; readonly lines: () => string[] };

/** A pipe in place of stderr, and a clock on which so many ms pass with each reading. */
export function progressPipe(stepMs: number): TestProgress {
  return progressTo({ isTTY: false }, stepMs);
}

/** A terminal in place of stderr. */
export function progressTerminal(): TestProgress {
  return progressTo({ isTTY: true, columns: 100, cursorTo: () => true, clearLine: () => true }, 0);
}

function progressTo(kind: object, stepMs: number): TestProgress {
  const to = Object.assign(new PassThrough(), kind);
  let text = "";
  to.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  let time = 0;
  const now = () => {
    time += stepMs;
    return time;
  };
  return { to: to as unknown as NodeJS.WriteStream, now, text: () => text, lines: () => text.split("\n").slice(0, -1) };
}
