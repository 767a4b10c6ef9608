import { enoughAtOnce } from "../send-window.ts";

/** Joins lines to texts that are worth a write each; none is longer than the client may leave unread, or it is one line. */
export function* inWrites(lines: Iterable<string>, unreadBytes: number): Generator<string, void> {
  const max = Math.min(enoughAtOnce, unreadBytes);
  let text = "";
  for (const line of lines) {
    if (text !== "" && text.length + line.length > max) {
      yield text;
      text = "";
    }
    text += line;
  }
  if (text !== "") yield text;
}
