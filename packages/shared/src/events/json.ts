import { create, toJson } from "@bufbuild/protobuf";
import { TimestampSchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "../log/log.ts";
import { formatPosition } from "../log/position.ts";
import { outcomeNames, timeSourceNames } from "./names.ts";

type WireTime = { readonly seconds: bigint; readonly nanos: number };

/**
 * An event as every transport writes it: lowerCamelCase, times RFC 3339 with the upstream's nanoseconds,
 * 64-bit numbers as strings; unknown and empty fields are omitted, except for the identity of the event.
 */
export function eventToJson(
  { offset, recordedAt, event }: RecordedEvent,
  epoch: string,
  options: { original?: boolean } = {},
) {
  return {
    position: formatPosition({ epoch, offset }),
    recordedAt: timeToJson(timestampFromDate(recordedAt)),
    id: event.id,
    source: event.source,
    ...(event.session !== "" && { session: event.session }),
    channel: event.channel,
    ordinal: String(event.ordinal),
    frameOrdinal: String(event.frame_ordinal),
    part: event.part,
    kind: event.kind,
    ...(event.subject !== "" && { subject: event.subject }),
    ...(event.outcome !== 0 && { outcome: outcomeNames[event.outcome] }),
    ...(event.error !== undefined && {
      error: { code: event.error.code, message: event.error.message, suggestions: event.error.suggestions },
    }),
    summary: event.summary,
    ...(event.occurred_at !== undefined && { occurredAt: timeToJson(event.occurred_at) }),
    ...(event.time_source !== 0 && { timeSource: timeSourceNames[event.time_source] }),
    ...(event.not_before !== undefined && { notBefore: timeToJson(event.not_before) }),
    ...(event.observed_at !== undefined && { observedAt: timeToJson(event.observed_at) }),
    ...(event.operation !== undefined && { operation: plain(event.operation) }),
    ...(event.inferred && { inferred: true }),
    ...(event.injected && { injected: true }),
    ...(event.redacted > 0 && { redacted: event.redacted }),
    ...(event.detail !== undefined && { detail: plain(event.detail.value) }),
    ...(options.original === true && event.original !== undefined && { original: originalToJson(event.original) }),
  };
}

export type EventJson = ReturnType<typeof eventToJson>;

function originalToJson({ type, bytes, size }: NonNullable<Event["original"]>) {
  return { type, size: String(size), ...(bytes.length > 0 || size === 0n ? { bytes: base64(bytes) } : {}) };
}

/** RFC 3339, UTC, with 0, 3, 6 or 9 decimals. */
export function timeToJson({ seconds, nanos }: WireTime): string {
  return toJson(TimestampSchema, create(TimestampSchema, { seconds, nanos }));
}

/** A detail message: names in lowerCamelCase, times, bytes and 64-bit numbers as text. */
function plain(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => {
      if (name === "_unknownFields" || field === undefined) return [];
      return [[camel(name), plainValue(name, field)]];
    }),
  );
}

/** Maps whose keys are user data and stay as they are. */
const maps: ReadonlySet<string> = new Set(["labels", "states", "ports", "dropped"]);

function plainValue(name: string, field: unknown): unknown {
  if (typeof field === "bigint") return String(field);
  if (field instanceof Uint8Array) return base64(field);
  if (Array.isArray(field)) return field.map((item) => plainValue(name, item));
  if (typeof field !== "object" || field === null) return field;
  if (isTime(field)) return timeToJson(field);
  if (maps.has(name)) return Object.fromEntries(Object.entries(field).map(([k, v]) => [k, plainValue("", v)]));
  return plain(field);
}

function isTime(field: object): field is WireTime {
  return "seconds" in field && "nanos" in field && typeof field.seconds === "bigint";
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
