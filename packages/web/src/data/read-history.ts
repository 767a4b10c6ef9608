import type { Message, TapedeckEvent } from "@tapedeck/client";
import { isFile } from "./reader.ts";

/** Events in order, and the position to continue after. */
export type Past = { readonly events: readonly TapedeckEvent[]; readonly position: string };

/**
 * A session's events up to now, in one answer: for a browser, a line of it costs a tenth of a message of a WebSocket.
 * Ends early if the answer breaks off, and is empty if it is refused, or in a file, which has no history: a
 * subscription continues from there, or reports the reason.
 */
export async function* readHistory(session: string, signal: AbortSignal): AsyncGenerator<Past, void> {
  if (isFile()) return;
  const path = `/api/v1/events?${new URLSearchParams({ session, after: "start" })}`;
  try {
    const answer = await fetch(path, { signal, headers: { accept: "application/x-ndjson" } });
    if (!answer.ok || answer.body === null) return;
    let rest = "";
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const lines = (rest + read.value).split("\n");
      rest = lines.pop() ?? "";
      const messages = lines.filter((line) => line !== "").map((line): Message => JSON.parse(line));
      const position = messages.findLast((message) => message.position !== undefined)?.position;
      if (position === undefined) continue;
      yield { events: messages.flatMap((message) => (message.type === "event" ? [message.event] : [])), position };
    }
  } catch (error) {
    if (signal.aborted) throw error;
  }
}

/** While history comes, the page is drawn this seldom: a long one is seen to come, and drawing it does not hold it up. */
export const historyMs = 400;
