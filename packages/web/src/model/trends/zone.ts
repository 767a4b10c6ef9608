/** The visitor's own time zone, by name. */
export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** "Europe/Berlin"; UTC for a text that names no zone, or is an offset, which Postgres reads the other way round. */
export function zoneNamed(name: string): string {
  try {
    if (!/^[A-Za-z]/.test(name)) return "UTC";
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return "UTC";
  }
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** The wall clock of a time zone, as if it were UTC. */
function clockOf(at: number, zone: string): number {
  let format = formats.get(zone);
  if (format === undefined) {
    const digits = { year: "numeric", month: "numeric", day: "numeric" } as const;
    const clock = { hour: "numeric", minute: "numeric", second: "numeric" } as const;
    format = new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", ...digits, ...clock });
    formats.set(zone, format);
  }
  const fields = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = fields;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function offsetAt(at: number, zone: string): number {
  return clockOf(at, zone) - Math.floor(at / 1_000) * 1_000;
}

/** The date in a time zone, "2026-11-20". */
export function dateAt(at: number, zone: string): string {
  return new Date(clockOf(at, zone)).toISOString().slice(0, 10);
}

export const dayMs = 86_400_000;
export const hourMs = 3_600_000;

/** The first moment of a date in a time zone, also where midnight is skipped or comes twice. */
export function startOfDate(date: string, zone: string): number {
  const midnight = Date.parse(`${date}T00:00:00Z`);
  const starts = [-1, 1].map((days) => midnight - offsetAt(midnight + days * dayMs, zone));
  const own = starts.filter((at) => dateAt(at, zone) === date);
  return Math.min(...(own.length > 0 ? own : starts));
}

/** The first moment of the hour that a clock in a time zone shows. */
export function startOfHour(at: number, zone: string): number {
  const offset = offsetAt(at, zone);
  return Math.floor((at + offset) / hourMs) * hourMs - offset;
}

/** A date `days` days later. */
export function dateAfter(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);
}

/** The Monday of a date's week. */
export function mondayOf(date: string): string {
  const day = new Date(`${date}T00:00:00Z`).getUTCDay();
  return dateAfter(date, -((day + 6) % 7));
}
