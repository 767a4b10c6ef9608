import { decodeEvent } from "../../events/codec.ts";
import { type EventPlaces, eventPlaces, LabelPlaces, sessionOf } from "../batch/batch.ts";
import { type ErasedSessions, nothingErased } from "../erasures/erased-sessions.ts";
import type { HeldEvent, RecordedEvent } from "../log.ts";
import { type Offset, offsetOf, type Sequence } from "../offset.ts";
import { eventSubjectsIn } from "../subjects.ts";
import type { Delivered } from "./consumer.ts";

export type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** The parts of a log message that are read. */
type BatchMessage = Pick<Delivered, "seq" | "recordedAtMs" | "subject" | "data">;

/** Which events a reader wants: those for which all are true. What it does not want costs little; by its offset, nothing. */
export type EventSelection = {
  readonly at?: (offset: Offset) => boolean;
  /** False only where no subject with this channel is wanted: then the kind is not read. */
  readonly ofChannel?: (channel: string) => boolean;
  readonly of?: (subject: string) => boolean;
};

/** The events of a message that are wanted, in order; none when the message is not a batch of events. */
export type ReadMessage = (message: BatchMessage, selection?: EventSelection) => readonly HeldEvent[];

const maxReported = 1_000;

/**
 * Reports a message with something else than events once and skips that, so that it can't stop all readers. `erased`:
 * what it leaves out, also of messages that were read before.
 */
export function messageReader(warn: Warn, erased: ErasedSessions = nothingErased): ReadMessage {
  const reported = new Set<Sequence>();
  const report = ({ seq, subject }: BatchMessage, err: unknown) => {
    if (reported.has(seq) || reported.size >= maxReported) return;
    reported.add(seq);
    warn("a message of the log is not a batch of events and is skipped", { seq, subject, err });
  };
  const subjects = new SubjectNames();
  return (message, { at: matchesOffset, ofChannel: matchesChannel, of: matchesSubject } = {}) => {
    let events: HeldEvent[] = [];
    const byLabels = subjects.of(message.subject);
    const labels = new LabelPlaces();
    const readOne = (offset: Offset, place: EventPlaces) => {
      labels.find(place);
      const { bytes } = place;
      const channel = byLabels.channelAt(bytes, labels);
      if (matchesChannel?.(channel.name) === false) return;
      const subject = channel.subjectAt(bytes, labels);
      if (matchesSubject?.(subject) === false) return;
      const held = bytes.subarray(place.start, place.end);
      const event = new EventInMessage(message, offset, subject, held, { report, erased });
      if (event.bytes !== undefined) events.push(event);
    };
    try {
      const places = eventPlaces(message.data, matchesChannel);
      while (places.next()) {
        const offset = offsetOf(message.seq, places.index);
        if (matchesOffset?.(offset) === false) continue;
        try {
          readOne(offset, places);
        } catch (err) {
          report(message, err);
        }
      }
    } catch (err) {
      report(message, err);
      events = [];
    }
    return events;
  };
}

type MessageReaderParts = {
  readonly report: (message: BatchMessage, err: unknown) => void;
  readonly erased: ErasedSessions;
};

class EventInMessage implements HeldEvent {
  readonly offset: Offset;
  readonly subject: string;
  readonly isShared = false;
  readonly #message: BatchMessage;
  readonly #bytes: Uint8Array;
  readonly #reader: MessageReaderParts;

  constructor(message: BatchMessage, offset: Offset, subject: string, bytes: Uint8Array, reader: MessageReaderParts) {
    this.offset = offset;
    this.subject = subject;
    this.#bytes = bytes;
    this.#message = message;
    this.#reader = reader;
  }

  get bytes(): Uint8Array | undefined {
    const { erased } = this.#reader;
    if (erased.isEmpty) return this.#bytes;
    return erased.has(sessionOf(this.#bytes) ?? "", this.#message.seq) ? undefined : this.#bytes;
  }

  decode(): RecordedEvent | undefined {
    const { offset, subject, bytes } = this;
    if (bytes === undefined) return undefined;
    try {
      return { offset, recordedAt: new Date(this.#message.recordedAtMs), subject, event: decodeEvent(bytes) };
    } catch (err) {
      this.#reader.report(this.#message, err);
      return undefined;
    }
  }
}

/** The subjects of events are kept for this many subjects of messages; above that, all are dropped and made again. */
const maxMessages = 10_000;

/** The subjects of events, by those of their messages. */
class SubjectNames {
  readonly #known = new Map<string, SubjectsInMessage>();

  of(message: string): SubjectsInMessage {
    let known = this.#known.get(message);
    if (known === undefined) {
      if (this.#known.size >= maxMessages) this.#known.clear();
      known = new SubjectsInMessage(message);
      this.#known.set(message, known);
    }
    return known;
  }
}

/** The channels of a message's events, looked up by their bytes. Each is created once, and there are few. */
class SubjectsInMessage {
  readonly #make: (channel: string, kind: string) => string;
  readonly #known: SubjectsOfChannel[] = [];

  constructor(message: string) {
    this.#make = eventSubjectsIn(message);
  }

  channelAt(body: Buffer, { channelStart, channelEnd }: LabelPlaces): SubjectsOfChannel {
    for (const known of this.#known) if (isSame(known.bytes, body, channelStart, channelEnd)) return known;
    const channel = new SubjectsOfChannel(copyOf(body, channelStart, channelEnd), this.#make);
    this.#known.push(channel);
    return channel;
  }
}

/**
 * Each subject is created once: there are only as many as nouns. They are looked up by the bytes of the kind, as decoding
 * it costs more than everything else that is read of an event without subscribers.
 */
class SubjectsOfChannel {
  readonly bytes: Buffer;
  readonly name: string;
  readonly #make: (channel: string, kind: string) => string;
  readonly #known = new Map<number, { readonly kind: Buffer; readonly subject: string }>();

  constructor(bytes: Buffer, make: (channel: string, kind: string) => string) {
    this.bytes = bytes;
    this.name = bytes.toString();
    this.#make = make;
  }

  subjectAt(body: Buffer, { kindStart, kindEnd }: LabelPlaces): string {
    const hash = hashOf(body, kindStart, kindEnd);
    const known = this.#known.get(hash);
    if (known !== undefined && isSame(known.kind, body, kindStart, kindEnd)) return known.subject;
    const kind = copyOf(body, kindStart, kindEnd);
    const subject = this.#make(this.name, kind.toString());
    this.#known.set(hash, { kind, subject });
    return subject;
  }
}

/** A copy, so that a kept value does not hold the whole message in memory. */
function copyOf(bytes: Buffer, start: number, end: number): Buffer {
  return Buffer.from(bytes.subarray(start, end));
}

/** FNV-1a. */
function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  return hash;
}

function isSame(known: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (known.length !== end - start) return false;
  for (let at = 0; at < known.length; at++) if (known[at] !== bytes[start + at]) return false;
  return true;
}
