const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000];
const durations = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((ms) => ms),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 30].map((count) => count * day),
];

export type Unit = "duration" | "share" | "count";

/** Where the lines of an axis are, from 0 to past `max`: round numbers, three or four of them. */
export function linesUpTo(max: number, unit: Unit): readonly number[] {
  const target = Math.max(max, unit === "share" ? 0.1 : unit === "count" ? 1 : 10) / 3;
  const step =
    unit === "duration"
      ? (durations.find((size) => size >= target) ?? Math.ceil(target / (30 * day)) * 30 * day)
      : roundUp(target, unit === "count" ? 1 : 0.01);
  const count = Math.max(1, Math.ceil(max / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}

/** The next 1, 2 or 5 of a power of ten. */
function roundUp(target: number, least: number): number {
  const power = 10 ** Math.floor(Math.log10(target));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= target - 1e-9) ?? target;
  return Math.max(least, step);
}

/** Room for the longest name beside an axis, in its font of 12 px. Most charts have the same, so that they align. */
export function axisWidth(names: readonly string[]): number {
  return Math.max(60, ...names.map((name) => 7 * name.length + 10));
}

/** Which of `count` bins have a name at the axis, so that names do not touch. */
export function namedBins(count: number, width: number, nameWidth: number): readonly number[] {
  const step = Math.max(1, Math.ceil((count * nameWidth) / Math.max(1, width)));
  return Array.from({ length: Math.ceil(count / step) }, (_, index) => count - 1 - index * step).toReversed();
}

/** A colour between two, as "#rrggbb" of both. */
export function between(from: string, to: string, share: number): string {
  const parts = (colour: string) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  const [a, b] = [parts(from), parts(to)];
  const mixed = a.map((part, index) => Math.round(part + ((b[index] ?? 0) - part) * share));
  return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}
