import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { asBuffer } from "../as-buffer.ts";
import type { RecordedEvent } from "../log/log.ts";
import { formatPosition } from "../log/position.ts";
import { outcomeNames, timeSourceNames } from "./names.ts";
import { dateToJson, timeToJson, type WireTime } from "./time-text.ts";

/** An event as every transport writes it. Times are RFC 3339; numbers are numbers, and bytes base64. */
export type EventJson = {
  position: string;
  recordedAt: string;
  id: string;
  source: string;
  session?: string;
  channel: string;
  ordinal: number;
  frameOrdinal: number;
  part: number;
  kind: string;
  subject?: string;
  outcome?: string;
  error?: { code: string; message: string; suggestions: string[] };
  summary: string;
  occurredAt?: string;
  timeSource?: string;
  notBefore?: string;
  observedAt?: string;
  operation?: Record<string, unknown>;
  inferred?: boolean;
  injected?: boolean;
  redacted?: number;
  detail?: Record<string, unknown>;
  original?: { type: string; size: number; bytes?: string };
};

/** The same as an object. Costs several times as much: what is only sent on needs no object. */
export function eventToJson(
  recorded: RecordedEvent,
  epoch: string,
  options: { readonly original?: boolean } = {},
): EventJson {
  return JSON.parse(writeEventJson(recorded, epoch, options)) as EventJson;
}

/**
 * An event as JSON text: lowerCamelCase, times RFC 3339 with the upstream's nanoseconds, 64-bit numbers with all
 * their digits; unknown and empty fields are omitted, except for the identity of the event. Written without objects in between:
 * every reader's stream consists of these.
 * @throws RangeError for a time that RFC 3339 can't write
 */
export function writeEventJson(
  { offset, recordedAt, event }: RecordedEvent,
  epoch: string,
  { original = false }: { readonly original?: boolean } = {},
): string {
  let json = `{"position":"${formatPosition({ epoch, offset })}","recordedAt":"${dateToJson(recordedAt)}"`;
  json += `,"id":${text(event.id)},"source":${text(event.source)}`;
  if (event.session !== "") json += `,"session":${text(event.session)}`;
  json += `,"channel":${text(event.channel)},"ordinal":${event.ordinal},"frameOrdinal":${event.frame_ordinal}`;
  json += `,"part":${event.part},"kind":${text(event.kind)}`;
  if (event.subject !== "") json += `,"subject":${text(event.subject)}`;
  const { [event.outcome]: outcome } = outcomeNames;
  if (event.outcome !== 0 && outcome !== undefined) json += `,"outcome":"${outcome}"`;
  if (event.error !== undefined) json += `,"error":${writeError(event.error)}`;
  json += `,"summary":${text(event.summary)}`;
  if (event.occurred_at !== undefined) json += `,"occurredAt":"${timeToJson(event.occurred_at)}"`;
  const { [event.time_source]: timeSource } = timeSourceNames;
  if (event.time_source !== 0 && timeSource !== undefined) json += `,"timeSource":"${timeSource}"`;
  if (event.not_before !== undefined) json += `,"notBefore":"${timeToJson(event.not_before)}"`;
  if (event.observed_at !== undefined) json += `,"observedAt":"${timeToJson(event.observed_at)}"`;
  if (event.operation !== undefined) json += `,"operation":${writeMessage(event.operation)}`;
  if (event.inferred) json += ',"inferred":true';
  if (event.injected) json += ',"injected":true';
  if (event.redacted > 0) json += `,"redacted":${event.redacted}`;
  if (event.detail !== undefined) json += `,"detail":${writeMessage(event.detail.value)}`;
  if (original && event.original !== undefined) json += `,"original":${writeOriginal(event.original)}`;
  return `${json}}`;
}

/** Text that needs no escapes: printable ASCII without quotation marks and backslashes. */
const plain = /^[ !#-[\]-~]*$/;

function text(value: string): string {
  return plain.test(value) ? `"${value}"` : JSON.stringify(value);
}

function writeError({ code, message, suggestions }: NonNullable<Event["error"]>): string {
  return `{"code":${text(code)},"message":${text(message)},"suggestions":${JSON.stringify(suggestions)}}`;
}

function writeOriginal({ type, bytes, size }: NonNullable<Event["original"]>): string {
  const content = bytes.length > 0 || size === 0n ? `,"bytes":"${base64(bytes)}"` : "";
  return `{"type":${text(type)},"size":${size}${content}}`;
}

/** A message of event.proto: names in lowerCamelCase; fields that are not set are omitted. */
function writeMessage(message: object): string {
  let json = "";
  for (const name in message) {
    const value = (message as Record<string, unknown>)[name];
    if (value === undefined || name === "_unknownFields") continue;
    json += (json === "" ? "{" : ",") + key(name) + (maps.has(name) ? writeMap(value as object) : writeValue(value));
  }
  return json === "" ? "{}" : `${json}}`;
}

/** Maps whose keys are user data and stay as they are. */
const maps: ReadonlySet<string> = new Set(["labels", "states", "ports", "dropped"]);

function writeMap(map: object): string {
  const fields = Object.entries(map).map(([name, value]) => `${text(name)}:${writeValue(value)}`);
  return `{${fields.join(",")}}`;
}

function writeValue(value: unknown): string {
  if (typeof value === "string") return text(value);
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "null";
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return "null";
  if (value instanceof Uint8Array) return `"${base64(value)}"`;
  if (Array.isArray(value)) return `[${value.map(writeValue).join(",")}]`;
  return isTime(value) ? `"${timeToJson(value)}"` : writeMessage(value);
}

function isTime(field: object): field is WireTime {
  return "seconds" in field && "nanos" in field && typeof field.seconds === "bigint";
}

const keys = new Map<string, string>();

/** A field's name in JSON, with its colon. There are as many as event.proto has fields. */
function key(name: string): string {
  let known = keys.get(name);
  if (known === undefined) {
    known = `"${name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())}":`;
    keys.set(name, known);
  }
  return known;
}

function base64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString("base64");
}
