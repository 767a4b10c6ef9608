const rfc3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?)(\.\d{1,9})?(Z|[+ -]\d{2}:\d{2})$/i;

/** The years 1 to 9999, as RFC 3339, protobuf's Timestamp and Postgres have them. */
const first = Date.parse("0001-01-01T00:00:00Z");
const end = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Reads an RFC 3339 time with a zone, cut to milliseconds; undefined for any other text, for a day or hour that no calendar
 * has, and for a time outside of the years 1 to 9999 in UTC. Use this for every time that comes from outside: `Date` takes
 * 30 February for 2 March. In a URL the "+" of a zone arrives as a space, and is taken for what it was.
 */
export function parseRfc3339(text: string): Date | undefined {
  const [, clock = "", fraction = "", zone = ""] = rfc3339.exec(text) ?? [];
  if (!isOnCalendar(clock.toUpperCase())) return undefined;
  const time = new Date(`${clock}${fraction}${zone.replace(" ", "+")}`.toUpperCase());
  // A zone that does not exist makes it no time.
  return time.getTime() >= first && time.getTime() <= end ? time : undefined;
}

/** Whether `Date` shows the same day and hour that were written. */
function isOnCalendar(clock: string): boolean {
  const date = new Date(`${clock}Z`);
  return clock !== "" && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(clock);
}
