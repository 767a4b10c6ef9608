import { parseRfc3339 } from "@tapedeck/shared/time/rfc3339";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { readEventLogLine } from "./event-log-file.ts";

const start = /^\{\s*"timestamp":\s*"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z"/;

/** The time of a line in Skaffold's own format, which is many times as fast as reading the whole line. */
export function timestampAtStart(line: string): Timestamp | undefined {
  const [, second, fraction = ""] = start.exec(line) ?? [];
  if (second === undefined) return undefined;
  const time = parseRfc3339(`${second}Z`);
  return time && { seconds: BigInt(time.getTime() / 1_000), nanos: Number(fraction.padEnd(9, "0")) };
}

/** The time of a line in any format; undefined for a bad line. */
export function timestampOfLine(line: string): Timestamp | undefined {
  const atStart = timestampAtStart(line);
  if (atStart !== undefined) return atStart;
  const frame = readEventLogLine(line);
  return typeof frame === "string" ? undefined : frame.timestamp;
}
