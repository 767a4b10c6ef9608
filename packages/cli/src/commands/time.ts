import { createRequire } from "node:module";
import { parseWhen } from "@tapedeck/shared/filter/time";
import { durationMs } from "@tapedeck/shared/service/duration";

/** What `parseSince` understands, for errors. */
export const timeForm =
  '"10m", "2h" or "3d" (that long ago), "yesterday", "last friday 14:00", or 2026-01-31T12:00:00Z';

/**
 * Parses a time in this machine's zone: how long ago, in words, or a date. A day without an hour is its beginning, and
 * a weekday the last one. Undefined if it is no time.
 */
export function parseTime(text: string, now = new Date()): Date | undefined {
  const trimmed = text.trim();
  const ms = durationMs(trimmed);
  if (ms !== undefined) return new Date(now.getTime() - ms);
  const exact = parseWhen(trimmed);
  if (exact !== undefined) return exact.type === "time" ? exact.time : exact.type === "now" ? now : undefined;
  // Loaded only for words: flags are parsed by every command, at once.
  const { casual } = createRequire(import.meta.url)("chrono-node/en") as typeof import("chrono-node/en");
  const [found, second] = casual.parse(trimmed, now);
  if (found === undefined || second !== undefined || found.end != null || found.text.length !== trimmed.length)
    return undefined;
  const date = found.start.date();
  if (found.start.isCertain("weekday") && !found.start.isCertain("day") && date > now) date.setDate(date.getDate() - 7);
  if (!found.start.isCertain("hour")) date.setHours(0, 0, 0, 0);
  return date;
}

export const notYet = "That is in the future: states are known up to now.";

/** For a state, which nobody knows before its time. */
export function isFuture(positionOrTime: string | undefined, now = new Date()): boolean {
  const when = positionOrTime === undefined ? undefined : parseWhen(positionOrTime);
  return when?.type === "time" && when.time > now;
}

/** The same for what may also be a place in the log: a position, or `start`. Gives it as the API takes it. */
export function positionOrTime(text: string, now = new Date()): string | undefined {
  const type = parseWhen(text)?.type;
  return type === "position" || type === "start" ? text : parseTime(text, now)?.toISOString();
}
