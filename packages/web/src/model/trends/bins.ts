import { type Choice, ranges, type TrendsGroup } from "./choice.ts";
import { dateAfter, dateAt, hourMs, mondayOf, startOfDate, startOfHour } from "./zone.ts";

/** An hour, day or week of a time zone: [from, to). */
export type Bin = {
  /** The bin's name in the API and SQL: "2026-11-20" (for a week its Monday), "2026-11-20T08:00:00Z". */
  readonly key: string;
  readonly from: number;
  readonly to: number;
};

/** All bins of a choice, empty ones included, oldest first. The last one contains the present, or the last day. */
export function binsOf({ range, group, zone }: Choice, now: number): readonly Bin[] {
  const today = dateAt(now, zone);
  const days = typeof range === "string" ? { from: dateAfter(today, 1 - ranges[range]), to: today } : range;
  if (group === "hour") return hours(range, days, zone, now);
  const step = group === "week" ? 7 : 1;
  const bins: Bin[] = [];
  for (let date = step === 7 ? mondayOf(days.from) : days.from; date <= days.to; date = dateAfter(date, step)) {
    bins.push({ key: date, from: startOfDate(date, zone), to: startOfDate(dateAfter(date, step), zone) });
  }
  return bins;
}

function hours(
  range: Choice["range"],
  days: { readonly from: string; readonly to: string },
  zone: string,
  now: number,
): readonly Bin[] {
  const isLast = range === "24h";
  const from = isLast ? startOfHour(now, zone) - 23 * hourMs : startOfDate(days.from, zone);
  const to = isLast ? startOfHour(now, zone) + hourMs : startOfDate(dateAfter(days.to, 1), zone);
  return Array.from({ length: Math.ceil((to - from) / hourMs) }, (_, index) => {
    const at = from + index * hourMs;
    return { key: `${new Date(at).toISOString().slice(0, 19)}Z`, from: at, to: at + hourMs };
  });
}

/** The bins from one name to another; none for unknown names. */
export function binsBetween(bins: readonly Bin[], since: string | undefined, until: string | undefined) {
  if (since === undefined) return bins;
  const [first, last] = [since, until ?? since].map((key) => bins.findIndex((bin) => bin.key === key));
  return first === undefined || last === undefined || first < 0 || last < 0 ? [] : bins.slice(first, last + 1);
}

/** "20 Nov", "10:00", "week of 16 Nov". */
export function binText({ key, from }: Bin, group: TrendsGroup, zone: string): string {
  if (group !== "hour") return group === "week" ? `week of ${dateText(key)}` : dateText(key);
  return `${dateText(dateAt(from, zone))} ${hourText(from, zone)}`;
}

/** The label at an axis, with a shorter date. */
export function tickText({ key, from }: Bin, group: TrendsGroup, zone: string): string {
  return group === "hour" ? hourText(from, zone) : dateText(key);
}

function hourText(at: number, zone: string): string {
  return new Date(at).toLocaleTimeString("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" });
}

function dateText(date: string): string {
  const at = new Date(`${date}T00:00:00Z`);
  return `${at.getUTCDate()} ${at.toLocaleString("en", { month: "short", timeZone: "UTC" })}`;
}
