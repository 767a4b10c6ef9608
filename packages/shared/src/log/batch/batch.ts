import { asBuffer } from "../../as-buffer.ts";
import { indexesPerMessage } from "../offset.ts";
import {
  type ChannelPart,
  type ChannelPlaces,
  channelsField,
  channelsIn,
  compressedBytes,
  encodeChannels,
  inBothForms,
  isByChannel,
} from "./channel-events.ts";
import { Fields } from "./fields.ts";
import { type Zstd, zstd } from "./zstd.ts";

/** The body of a message of the log is a RecordBatch (proto/tapedeck/v1/log.proto), made of events that are encoded already. */

/** The bounds of one message. A larger event, or several that belong together, gets its own. */
export const batchLimits = { events: indexesPerMessage, bytes: 64 * 1024 } as const;

/** Tag of RecordBatch.events. */
const eventsTag = 0x0a;
const eventsField = 1;

/** Fields of Event. */
const sessionField = 3;
const channelField = 4;
const partField = 7;
const kindField = 8;
const originalField = 100;

/** Fields of Original. */
const originalBytesField = 2;
const originalSizeField = 3;

/** The same events give the same bytes. */
export function encodeBatch(events: readonly Uint8Array[], { compress }: Pick<Zstd, "compress"> = zstd): Uint8Array {
  const total = bytesTogether(events);
  const isSmall = total < compressedBytes.min;
  return compress === undefined || isSmall || total > compressedBytes.max
    ? encodeEvents(events)
    : encodeChannels(partsOf(events), compress);
}

function bytesTogether(events: readonly Uint8Array[]): number {
  return events.reduce((sum, { byteLength }) => sum + 1 + varintBytes(byteLength) + byteLength, 0);
}

/** A batch that is not compressed, whatever its size. */
export function encodeEvents(events: readonly Uint8Array[]): Uint8Array {
  const body = new Uint8Array(bytesTogether(events));
  let at = 0;
  for (const event of events) {
    body[at++] = eventsTag;
    let length = event.byteLength;
    for (; length > 0x7f; length = Math.floor(length / 128)) body[at++] = (length & 0x7f) | 0x80;
    body[at++] = length;
    body.set(event, at);
    at += event.byteLength;
  }
  return body;
}

function partsOf(events: readonly Uint8Array[]): readonly ChannelPart[] {
  const byChannel = new Map<string, { readonly indexes: number[]; readonly events: Uint8Array[] }>();
  for (const [index, event] of events.entries()) {
    const channel = channelOf(event);
    const part = byChannel.get(channel) ?? { indexes: [], events: [] };
    part.indexes.push(index);
    part.events.push(event);
    byChannel.set(channel, part);
  }
  return Array.from(byChannel, ([channel, { indexes, events }]) => ({
    channel,
    indexes,
    events: encodeEvents(events),
  }));
}

/**
 * The encoded events, in order, without a copy where they are not compressed.
 * @throws when the bytes are not a batch
 */
export function eventsIn(body: Uint8Array): readonly Uint8Array[] {
  const places = eventPlaces(body);
  const events: Uint8Array[] = [];
  while (places.next()) events.push(places.bytes.subarray(places.start, places.end));
  return events;
}

/** Goes through a batch event by event, for readers who want few of them. */
export type EventPlaces = {
  /** Where the present event stands: in `bytes` from `start` to `end`. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly index: number;
  /** Goes to the next event; false at the end. @throws when the bytes are not a batch, which may be known only at their end */
  next(): boolean;
};

/** `isWanted`: other channels may be left out. @throws when the bytes are not a batch */
export function eventPlaces(body: Uint8Array, isWanted: (channel: string) => boolean = () => true): EventPlaces {
  const bytes = asBuffer(body);
  return isByChannel(bytes) ? new PlacesByChannel(channelsIn(bytes, isWanted)) : new PlacesInOrder(bytes);
}

class PlacesInOrder implements EventPlaces {
  readonly bytes: Buffer;
  readonly #fields: Fields;
  index = -1;
  start = 0;
  end = 0;

  constructor(body: Buffer) {
    this.bytes = body;
    this.#fields = new Fields(body);
  }

  next(): boolean {
    const fields = this.#fields;
    while (fields.next()) {
      if (fields.field === channelsField) throw new Error(inBothForms);
      if (!fields.isContent || fields.field !== eventsField) continue;
      this.index++;
      this.start = fields.start;
      this.end = fields.end;
      checkIndex(this.index);
      return true;
    }
    if (this.index < 0) throw new Error("no events in a message");
    return false;
  }
}

/** Brings the events of all channels into their order. */
class PlacesByChannel implements EventPlaces {
  readonly #channels: readonly ChannelPlaces[];
  #present: ChannelPlaces | undefined;
  bytes: Buffer = Buffer.alloc(0);
  index = -1;
  start = 0;
  end = 0;

  constructor(channels: readonly ChannelPlaces[]) {
    this.#channels = channels;
  }

  next(): boolean {
    this.#present?.next();
    let first: ChannelPlaces | undefined;
    for (const channel of this.#channels)
      if (channel.index < (first?.index ?? Number.POSITIVE_INFINITY)) first = channel;
    if (first === undefined) return false;
    if (first.index <= this.index) throw new Error("two events at one index of a message");
    checkIndex(first.index);
    this.#present = first;
    this.bytes = first.bytes;
    this.index = first.index;
    this.start = first.start;
    this.end = first.end;
    return true;
  }
}

function checkIndex(index: number): void {
  if (index >= indexesPerMessage) throw new Error(`more than ${indexesPerMessage} events in one message`);
}

/** The fields that filters read first. They stand at the beginning, so that the rest need not be read. */
export function labelsOf(event: Uint8Array): { readonly channel: string; readonly kind: string } {
  const fields = new Fields(event);
  const bytes = asBuffer(event);
  let channel = "";
  while (fields.next()) {
    if (fields.field > kindField) break;
    if (!fields.isContent) continue;
    if (fields.field === channelField) channel = bytes.toString("utf8", fields.start, fields.end);
    else if (fields.field === kindField) return { channel, kind: bytes.toString("utf8", fields.start, fields.end) };
  }
  return { channel, kind: "" };
}

function channelOf(event: Uint8Array): string {
  const fields = new Fields(event);
  while (fields.next() && fields.field <= channelField) {
    if (fields.field === channelField) return asBuffer(event).toString("utf8", fields.start, fields.end);
  }
  return "";
}

/** Undefined when the bytes are not an event; empty for one about the source as a whole. */
export function sessionOf(event: Uint8Array): string | undefined {
  const fields = new Fields(event);
  try {
    while (fields.next() && fields.field <= sessionField) {
      if (fields.field === sessionField) return asBuffer(event).toString("utf8", fields.start, fields.end);
    }
  } catch {
    return undefined;
  }
  return "";
}

/** The same as `labelsOf` for one event after the other of a batch, but only where they stand: most repeat known ones. */
export class LabelPlaces {
  readonly #fields = new Fields(Buffer.alloc(0));
  channelStart = 0;
  channelEnd = 0;
  kindStart = 0;
  kindEnd = 0;

  /** @throws RangeError when the bytes are not an event */
  find({ bytes, start, end }: EventPlaces): void {
    const fields = this.#fields;
    this.channelStart = this.channelEnd = this.kindStart = this.kindEnd = start;
    fields.begin(bytes, start, end);
    while (fields.next() && fields.field <= kindField) {
      if (!fields.isContent) continue;
      if (fields.field === channelField) {
        this.channelStart = fields.start;
        this.channelEnd = fields.end;
      } else if (fields.field === kindField) {
        this.kindStart = fields.start;
        this.kindEnd = fields.end;
        return;
      }
    }
  }
}

/** An upstream's frame, or a part of one, as an event holds it. */
export type HeldFrame = {
  readonly session: string;
  readonly part: number;
  readonly kind: string;
  /** The upstream's own bytes; undefined when the event has none, or its frame is too large for the log. */
  readonly bytes: Uint8Array | undefined;
};

/** Reads what the upstream's own clients get, and nothing else. Undefined when the bytes are not an event. */
export function frameOf(event: Uint8Array): HeldFrame | undefined {
  const bytes = asBuffer(event);
  const fields = new Fields(bytes);
  let [session, kind] = ["", ""];
  let part = 0;
  let original: Uint8Array | undefined;
  try {
    while (fields.next()) {
      if (fields.field === sessionField) session = bytes.toString("utf8", fields.start, fields.end);
      else if (fields.field === partField) part = fields.value;
      else if (fields.field === kindField) kind = bytes.toString("utf8", fields.start, fields.end);
      else if (fields.field === originalField) original = originalIn(bytes, fields.start, fields.end);
    }
  } catch {
    return undefined;
  }
  return { session, part, kind, bytes: original };
}

function originalIn(event: Buffer, start: number, end: number): Uint8Array | undefined {
  const fields = new Fields(event, start, end);
  let bytes: Uint8Array | undefined;
  let size = 0;
  while (fields.next()) {
    if (fields.field === originalBytesField) bytes = event.subarray(fields.start, fields.end);
    else if (fields.field === originalSizeField) size = fields.value;
  }
  // Bytes that are empty are not on the wire.
  return bytes ?? (size > 0 ? undefined : event.subarray(0, 0));
}

function varintBytes(length: number): number {
  return length < 0x80 ? 1 : length < 0x4000 ? 2 : length < 0x200000 ? 3 : length < 0x10000000 ? 4 : 5;
}
