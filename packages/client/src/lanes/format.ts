import { isPossible } from "./lasted.ts";

/** "820 ms", "2.3 s", "1 min 12 s", "3 h 5 min", "2 d 4 h". */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joined(minutes, "min", seconds % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return joined(hours, "h", minutes % 60, "min");
  return joined(Math.floor(hours / 24), "d", hours % 24, "h");
}

function joined(first: number, firstUnit: string, second: number, secondUnit: string): string {
  return second === 0 ? `${first} ${firstUnit}` : `${first} ${firstUnit} ${second} ${secondUnit}`;
}

/** "just now", "12 s", "4 min", "2 h", "3 d": how long ago, in one unit. */
export function ageText(ms: number): string {
  if (ms < 2_000) return "just now";
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${Math.floor(ms / 86_400_000)} d`;
}

export function agoText(ms: number): string {
  const age = ageText(ms);
  return age === "just now" ? age : `${age} ago`;
}

/** A running time in whole seconds, so that it does not flicker. */
export function elapsedText(ms: number): string {
  return ms < 60_000 ? `${Math.floor(Math.max(0, ms) / 1_000)} s` : durationText(ms);
}

export const unknownTime = "unknown time";

/** "today 10:42:07", "yesterday 10:42:07", "21 Nov 10:42:07", in the visitor's time zone; "unknown time" for 1970. */
export function dateTimeText(at: number, now: number): string {
  if (!isPossible(at)) return unknownTime;
  const time = clockText(at);
  const days = Math.round((startOfDay(now) - startOfDay(at)) / 86_400_000);
  if (days === 0) return `today ${time}`;
  if (days === 1) return `yesterday ${time}`;
  return `${dateText(at, now)} ${time}`;
}

export function isSameDay(at: number, now: number): boolean {
  return startOfDay(at) === startOfDay(now);
}

/** "21 Nov", with the year where that is not this year's. */
function dateText(at: number, now: number): string {
  const date = new Date(at);
  const month = date.toLocaleString("en", { month: "short" });
  const year = date.getFullYear() === new Date(now).getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${month}${year}`;
}

/** "10:42:07" for a time of today, else "21 Nov 10:42:07": for the rows of a list. */
export function stampText(at: number, now: number): string {
  return isSameDay(at, now) ? clockText(at) : `${dateText(at, now)} ${clockText(at)}`;
}

/** "Sat 21 Nov 2026, 10:42:07.123 GMT+1": all that is known of a time, for those who ask. */
export function fullTimeText(at: number): string {
  const date = new Date(at);
  const part = (options: Intl.DateTimeFormatOptions) => date.toLocaleString("en-GB", options);
  const [weekday, month] = [part({ weekday: "short" }), date.toLocaleString("en", { month: "short" })];
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  const zone = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" })
    .formatToParts(date)
    .find(({ type }) => type === "timeZoneName")?.value;
  return `${weekday} ${date.getDate()} ${month} ${date.getFullYear()}, ${clockText(at)}.${ms} ${zone}`;
}

export function clockText(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}

function startOfDay(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}

/** RFC 3339 as milliseconds; undefined for null or a text that is no time. */
export function millis(time: string | null | undefined): number | undefined {
  const at = Date.parse(time ?? "");
  return Number.isNaN(at) ? undefined : at;
}

/** The short form of "workspace/alice/shop/skaffold": "alice/shop". */
export function sourceText(source: string): string {
  const parts = source.split("/");
  return parts.length === 4 ? parts.slice(1, 3).join("/") : source;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** "820 B", "1.3 MiB" */
export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const size = bytes / 1_024 ** power;
  return `${size < 10 && power > 0 ? size.toFixed(1) : Math.round(size)} ${units[power]}`;
}

const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, "g");

/** Text without a terminal's colours. */
export function plainText(text: string): string {
  return text.replace(escapes, "").replace(/\r\n?/g, "\n");
}
