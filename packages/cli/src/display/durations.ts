import { isPossible } from "@tapedeck/client/lanes/lasted";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** "340 ms", "4.2 s", "3 min 20 s", "2 h 5 min", "3 d 4 h". */
export function durationText(ms: number): string {
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < minute) return `${(ms / second).toFixed(1)} s`;
  if (ms < hour) return two(ms, minute, "min", second, "s");
  if (ms < day) return two(ms, hour, "h", minute, "min");
  return two(ms, day, "d", hour, "h");
}

type Lasting = {
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly durationMs: number | null;
};

/** How long an operation took; "unknown" if its times are known and can't both be right, "-" without them. */
export function tookText({ startedAt, endedAt, durationMs }: Lasting): string {
  if (durationMs !== null) return durationText(durationMs);
  return startedAt === null || endedAt === null ? "-" : "unknown";
}

/** "now", "12 s ago", "3 min ago"; "-" for no time, and for one that a clock which was never set has shown. */
export function agoText(time: string | null | undefined, now = Date.now()): string {
  if (time === null || time === undefined) return "-";
  if (!isPossible(Date.parse(time))) return "-";
  const ms = Math.max(0, now - Date.parse(time));
  if (ms < second) return "now";
  for (const [unit, name] of [[day, "d"] as const, [hour, "h"] as const, [minute, "min"] as const]) {
    if (ms >= unit) return `${Math.floor(ms / unit)} ${name} ago`;
  }
  return `${Math.floor(ms / second)} s ago`;
}

export function bytesText(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1_024 ** power).toFixed(1)} ${units[power - 1]}`;
}

function two(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const wholes = Math.floor(ms / large);
  const rest = Math.floor((ms - wholes * large) / small);
  return rest === 0 ? `${wholes} ${largeName}` : `${wholes} ${largeName} ${rest} ${smallName}`;
}
