import { asBuffer } from "../../as-buffer.ts";
import { decodeEvent } from "../../events/codec.ts";
import { eventBounds, LabelPlaces, sessionOf } from "../batch.ts";
import { type ErasedSessions, nothingErased } from "../erasures/erased-sessions.ts";
import type { HeldEvent, RecordedEvent } from "../log.ts";
import { type Offset, offsetOf, type Sequence } from "../offset.ts";
import { eventSubjectsIn } from "../subjects.ts";
import type { Delivered } from "./consumer.ts";

export type Warn = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** The parts of a log message that are read. */
type BatchMessage = Pick<Delivered, "seq" | "recordedAtMs" | "subject" | "data">;

/** Which events a reader wants: those for which both are true. What it does not want costs little; by its offset, nothing. */
export type EventSelection = { readonly at?: (offset: Offset) => boolean; readonly of?: (subject: string) => boolean };

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
  return (message, { at: matchesOffset, of: matchesSubject } = {}) => {
    const events: HeldEvent[] = [];
    const body = asBuffer(message.data);
    let bounds: readonly number[];
    try {
      bounds = eventBounds(body);
    } catch (err) {
      report(message, err);
      return events;
    }
    const byLabels = subjects.of(message.subject);
    const places = new LabelPlaces(body);
    for (let index = 0; 2 * index < bounds.length; index++) {
      const [start, end] = [bounds[2 * index] as number, bounds[2 * index + 1] as number];
      const offset = offsetOf(message.seq, index);
      if (matchesOffset?.(offset) === false) continue;
      try {
        places.find(start, end);
        const subject = byLabels.at(body, places);
        if (matchesSubject?.(subject) === false) continue;
        const event = new EventInMessage(message, offset, subject, body.subarray(start, end), { report, erased });
        if (event.bytes !== undefined) events.push(event);
      } catch (err) {
        report(message, err);
      }
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

type FilteredFields = { readonly channel: Buffer; readonly kind: Buffer; readonly subject: string };

/**
 * Each is created once: there are only as many as channels times nouns. They are looked up by the bytes of channel and
 * kind, as decoding these costs more than everything else that is read of an event without subscribers.
 */
class SubjectsInMessage {
  readonly #make: (channel: string, kind: string) => string;
  readonly #known = new Map<number, FilteredFields>();

  constructor(message: string) {
    this.#make = eventSubjectsIn(message);
  }

  at(body: Buffer, { channelStart, channelEnd, kindStart, kindEnd }: LabelPlaces): string {
    const hash = hashOf(body, kindStart, kindEnd, hashOf(body, channelStart, channelEnd, 0x811c9dc5));
    const known = this.#known.get(hash);
    if (
      known !== undefined &&
      isSame(known.channel, body, channelStart, channelEnd) &&
      isSame(known.kind, body, kindStart, kindEnd)
    )
      return known.subject;
    // Copies, so that a kept value does not hold the whole message in memory.
    const channel = Buffer.from(body.subarray(channelStart, channelEnd));
    const kind = Buffer.from(body.subarray(kindStart, kindEnd));
    const subject = this.#make(channel.toString(), kind.toString());
    this.#known.set(hash, { channel, kind, subject });
    return subject;
  }
}

/** FNV-1a. */
function hashOf(bytes: Buffer, start: number, end: number, seed: number): number {
  let hash = seed;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  return hash;
}

function isSame(known: Buffer, bytes: Buffer, start: number, end: number): boolean {
  if (known.length !== end - start) return false;
  for (let at = 0; at < known.length; at++) if (known[at] !== bytes[start + at]) return false;
  return true;
}
