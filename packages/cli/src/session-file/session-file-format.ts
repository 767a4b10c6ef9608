import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { issueText } from "@tapedeck/shared/errors/schema-error";
import { decodeEvent, encodeEvent } from "@tapedeck/shared/events/codec";
import { eventToJson } from "@tapedeck/shared/events/json";
import { logStart } from "@tapedeck/shared/log/offset";
import { parseSourceName } from "@tapedeck/shared/source";
import { parseRfc3339 } from "@tapedeck/shared/time/rfc3339";
import { upstreamNames } from "@tapedeck/shared/upstreams";
import { z } from "zod";
import { jsonText } from "../display/output.ts";

// A session file, line by line. docs/session-file.md describes it.

export const sessionFormat = "tapedeck-session";
const endFormat = "tapedeck-session-end";
const version = 1;

const time = z.string().refine((text) => parseRfc3339(text) !== undefined, "is not a time");

const sessionHeader = z.object({
  session: z.string(),
  labels: z.record(z.string(), z.string()),
  upstreamVersion: z.string(),
  /** The upstream's own times. */
  startedAt: time.optional(),
  endedAt: time.optional(),
  endReason: z.string().optional(),
  /** The session had not ended when it was exported: the file has its beginning. */
  running: z.literal(true).optional(),
});

const header = z.object({
  format: z.literal(sessionFormat),
  version: z.literal(version),
  exportedAt: time,
  /** Program and version. */
  exportedBy: z.string(),
  /** Full name of the source. */
  source: z.string().refine((name) => parseSourceName(name) !== undefined, "not a source"),
  upstream: z.enum(upstreamNames),
  /** Everything up to this position is in the file. */
  position: z.string(),
  /** Ordered by id, as the events are. */
  sessions: z.array(sessionHeader).min(1),
});

const end = z.object({
  format: z.literal(endFormat),
  /** Lines between the first and this one. */
  events: z.int().min(0),
  /** By session and channel: events that had expired. */
  missing: z.record(z.string(), z.record(z.string(), z.int().min(1))),
  /** Hex, of all bytes before this line. */
  sha256: z.string(),
});

export type SessionFileHeader = z.infer<typeof header>;
export type SessionFileEnd = z.infer<typeof end>;

/** An event and its place in the log that it was exported from. */
export type ExportedEvent = { readonly position: string; readonly recordedAt: Date; readonly event: Event };

export function headerLine(fields: Omit<SessionFileHeader, "format" | "version">): string {
  return jsonText({ format: sessionFormat, version, ...fields });
}

/**
 * The event as the API gives it with `original`. `proto` is the event itself, without the bytes that `original` has
 * already.
 */
export function eventLine({ position, recordedAt, event }: ExportedEvent): string {
  const { original } = event;
  const rest = original === undefined ? event : { ...event, original: { ...original, bytes: Buffer.alloc(0) } };
  const json = eventToJson({ offset: logStart, recordedAt, subject: "", event }, "", { original: true });
  return jsonText({ ...json, position, proto: Buffer.from(encodeEvent(rest)).toString("base64") });
}

export function endLine(fields: Omit<SessionFileEnd, "format">): string {
  return JSON.stringify({ format: endFormat, ...fields });
}

/** @throws Error that describes the problem */
export function readHeader(line: string): SessionFileHeader {
  const fields = objectIn(line);
  if (typeof fields.version === "number" && fields.version > version) {
    throw new Error(`it is from a newer Tapedeck (format version ${fields.version}; this one supports ${version})`);
  }
  const { data, error } = header.safeParse(fields, { error: issueText });
  if (error !== undefined) throw new Error(`it is not the first line of a session file: ${pathOf(error)}`);
  return data;
}

/** The last line, or undefined for the line of an event. */
export function readEnd(line: string): SessionFileEnd | undefined {
  if (!line.startsWith(`{"format":`)) return undefined;
  const { data, error } = end.safeParse(objectIn(line), { error: issueText });
  if (error !== undefined) throw new Error(`it is not the last line of a session file: ${pathOf(error)}`);
  return data;
}

/** @throws Error that describes the problem */
export function readEventLine(line: string): ExportedEvent {
  const { position, recordedAt, proto, original } = objectIn(line);
  if (typeof proto !== "string") throw new Error("it has no event (`proto`)");
  const event = decoded(bytesIn(proto, "proto"));
  const bytes = (original as { readonly bytes?: unknown } | undefined)?.bytes;
  if (event.original !== undefined && typeof bytes === "string") {
    event.original = { ...event.original, bytes: bytesIn(bytes, "original.bytes") };
  }
  const recorded = typeof recordedAt === "string" ? parseRfc3339(recordedAt) : undefined;
  if (recorded === undefined) throw new Error("it has no time (`recordedAt`)");
  return { position: String(position), recordedAt: recorded, event };
}

function decoded(bytes: Uint8Array): Event {
  try {
    return decodeEvent(bytes);
  } catch {
    throw new Error("its `proto` is not an event");
  }
}

function bytesIn(text: string, name: string): Buffer {
  const bytes = Buffer.from(text, "base64");
  // Characters that are not base64 are skipped in decoding.
  if (bytes.toString("base64") !== text) throw new Error(`its \`${name}\` is not base64`);
  return bytes;
}

function objectIn(line: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error("it is not JSON, or is truncated");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("it is not a JSON object");
  return value as Readonly<Record<string, unknown>>;
}

function pathOf(error: z.ZodError): string {
  const [first] = error.issues;
  return `${first?.path.join(".") ?? ""}: ${first?.message ?? ""}`;
}
