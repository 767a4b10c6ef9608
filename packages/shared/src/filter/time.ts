import { type Position, parsePosition } from "../log/position.ts";
import { parseRfc3339 } from "../time/rfc3339.ts";

/** A point in the log as clients name it: the value of `after`, `at` and `until`. */
export type When =
  | { readonly type: "position"; readonly position: Position }
  /** Recorded time. */
  | { readonly type: "time"; readonly time: Date }
  /** Before the first kept event. */
  | { readonly type: "start" }
  /** After the log's last event when the request is accepted. */
  | { readonly type: "now" };

/**
 * Reads a position, an RFC 3339 time with a zone, "start" or "now"; undefined for anything else. In a URL the "+" of a
 * zone arrives as a space, and is taken for what it was. Times are cut to milliseconds, as the log's own are.
 */
export function parseWhen(text: string): When | undefined {
  if (text === "start" || text === "now") return { type: text };
  const position = parsePosition(text);
  if (position !== undefined) return { type: "position", position };
  const time = parseRfc3339(text);
  return time === undefined ? undefined : { type: "time", time };
}
