import { RecordBatch } from "@tapedeck/proto/tapedeck/v1/log";
import { asBuffer } from "../../as-buffer.ts";
import { Fields } from "./fields.ts";
import { type Zstd, zstd } from "./zstd.ts";

/** The events of a batch by channel: see ChannelEvents in proto/tapedeck/v1/log.proto. */

/** The events of one channel. */
export type ChannelPart = {
  readonly channel: string;
  readonly indexes: readonly number[];
  /** A RecordBatch of these events alone. */
  readonly events: Uint8Array;
};

/** A batch of so many bytes is written by channel. Compressing less saves little, and more would hold the event loop. */
export const compressedBytes = { min: 4 * 1024, max: 1024 * 1024 } as const;

/** Tag of RecordBatch.channels, with which such a batch begins. */
const channelsTag = 0x12;

/** Fields of RecordBatch. */
const eventsField = 1;
export const channelsField = 2;
export const inBothForms = "a batch with events both by channel and not";

/** Fields of ChannelEvents. */
const channelField = 1;
const indexesField = 2;
const sizeField = 3;
const compressedField = 4;

/** The same events give the same bytes. */
export function encodeChannels(parts: readonly ChannelPart[], compress: NonNullable<Zstd["compress"]>): Uint8Array {
  const channels = parts.map(({ channel, indexes, events }) => {
    const size = events.byteLength;
    return { channel, indexes: [...indexes], size, events: asBuffer(compress(events)) };
  });
  return RecordBatch.encode({ events: [], channels }).finish();
}

/** Whether the events of a batch stand by channel. */
export function isByChannel(body: Uint8Array): boolean {
  return body[0] === channelsTag;
}

/** What a message takes in memory when all of it is read. */
export function bytesInMemory(body: Uint8Array): number {
  let bytes = body.byteLength;
  if (!isByChannel(body)) return bytes;
  try {
    for (const { size } of foundIn(asBuffer(body))) bytes += size;
  } catch {
    // It is not a batch, which is reported where it is read.
  }
  return bytes;
}

/** The channels that a reader needs, decompressed. @throws when the bytes are not a batch by channel */
export function channelsIn(body: Buffer, isWanted: (channel: string) => boolean): readonly ChannelPlaces[] {
  const places: ChannelPlaces[] = [];
  for (const found of foundIn(body)) if (isWanted(found.channel)) places.push(new ChannelPlaces(body, found));
  return places;
}

/** Where the parts of a channel stand among the bytes of a message. */
type Found = {
  channel: string;
  indexesStart: number;
  indexesEnd: number;
  size: number;
  eventsStart: number;
  eventsEnd: number;
};

function* foundIn(body: Buffer): Generator<Found, void> {
  const batch = new Fields(body);
  while (batch.next()) {
    if (batch.field === eventsField) throw new Error(inBothForms);
    if (!batch.isContent || batch.field !== channelsField) continue;
    const found: Found = { channel: "", indexesStart: 0, indexesEnd: 0, size: 0, eventsStart: 0, eventsEnd: 0 };
    const fields = new Fields(body, batch.start, batch.end);
    while (fields.next()) {
      const { field, start, end } = fields;
      if (field === sizeField) found.size = fields.value;
      else if (!fields.isContent) continue;
      else if (field === channelField) found.channel = body.toString("utf8", start, end);
      else if (field === indexesField) [found.indexesStart, found.indexesEnd] = [start, end];
      else if (field === compressedField) [found.eventsStart, found.eventsEnd] = [start, end];
    }
    yield found;
  }
}

/** Goes through the events of a channel. The present one stands in `bytes` from `start` to `end`. */
export class ChannelPlaces {
  readonly bytes: Buffer;
  readonly #fields: Fields;
  readonly #indexes: Fields;
  /** The present event's index in the message; infinite at the end. */
  index = -1;
  start = 0;
  end = 0;

  /** @throws when the bytes are not what was compressed */
  constructor(body: Buffer, { indexesStart, indexesEnd, size, eventsStart, eventsEnd }: Found) {
    this.bytes = decompressed(body.subarray(eventsStart, eventsEnd), size);
    this.#fields = new Fields(this.bytes);
    this.#indexes = new Fields(body, indexesStart, indexesEnd);
    this.next();
  }

  /** @throws when events and indexes do not match */
  next(): void {
    const fields = this.#fields;
    const index = this.#indexes.nextNumber();
    const hasEvent = fields.next();
    if (hasEvent !== (index !== undefined) || (hasEvent && !(fields.isContent && fields.field === eventsField))) {
      throw new Error("a channel with other events than it says");
    }
    this.index = index ?? Number.POSITIVE_INFINITY;
    this.start = fields.start;
    this.end = fields.end;
  }
}

function decompressed(events: Buffer, size: number): Buffer {
  if (size > compressedBytes.max) throw new RangeError(`a channel with ${size} bytes of events`);
  return asBuffer(zstd.decompress(events, size));
}
