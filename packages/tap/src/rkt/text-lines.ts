import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { GetLogsResponse } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { nanosOfTimestamp } from "@tapedeck/shared/time/timestamp";

/**
 * The lines of a v1alpha.GetLogsResponse, each as a response with that line alone, in its original bytes. Undefined for
 * bytes that are not such a response.
 */
export function linesOf(response: Uint8Array): readonly Buffer[] | undefined {
  const bytes = asBuffer(response);
  const reader = new BinaryReader(bytes);
  const lines: Buffer[] = [];
  try {
    while (reader.pos < reader.len) {
      const start = reader.pos;
      const [field, type] = reader.tag();
      reader.skip(type, field);
      if (field === linesField && type === WireType.LengthDelimited) lines.push(bytes.subarray(start, reader.pos));
    }
    return lines;
  } catch {
    return undefined;
  }
}

const linesField = 1;

/** The text of a response with one line. Bytes that are not UTF-8 are shown as U+FFFD. */
export function textOf(line: Uint8Array): string {
  return GetLogsResponse.decode(line).lines[0] ?? "";
}

/** A time as Go prints it, then the journal's field: "2026-11-20 15:28:29.36926 +0100 CET MESSAGE=web line 10". */
const printed = /^(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))? ([+-])(\d\d)(\d\d) \S+ MESSAGE=/;

/** The line's time in nanoseconds since 1970. Undefined for a line without a time, which belongs to the line before. */
export function timeOf(text: string): bigint | undefined {
  const found = printed.exec(text);
  if (found === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found.slice(1, 7).map(Number);
  const [, , , , , , , fraction = "", sign = "+", hoursEast, minutesEast] = found;
  const east = (Number(hoursEast) * 60 + Number(minutesEast)) * (sign === "-" ? -60 : 60);
  const seconds = Date.UTC(year, month - 1, day, hour, minute, second) / 1_000 - east;
  if (seconds >= endOfTime) return undefined;
  return nanosOfTimestamp({ seconds: BigInt(seconds), nanos: Number(fraction.padEnd(9, "0")) });
}

/** The message of a line, without the time and the field. */
export function messageOf(text: string): string {
  return text.replace(printed, "");
}

/**
 * True where the journal has divided a message within a line. It does so after a fixed number of bytes (LineMax of
 * journald.conf; fewer before systemd 235).
 */
export function isCut(message: string): boolean {
  const { length } = message;
  if (length > longestLine || length * 3 < longestLineBefore) return false;
  const bytes = Buffer.byteLength(message);
  return bytes === longestLine || bytes === longestLineBefore;
}

const longestLine = 48 * 1024;
const longestLineBefore = 2_048;

/** A protobuf Timestamp ends before this second. */
const endOfTime = 253_402_300_800;
