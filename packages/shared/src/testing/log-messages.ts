import { randomBytes } from "node:crypto";
import { Event, Original } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "../events/codec.ts";
import { type Cursor, fitTogether, type LogWriter, type NewEvent, type PublishOutcome } from "../log/log.ts";
import { type Offset, offsetOf } from "../log/offset.ts";
import { messageSubject } from "../log/subjects.ts";
import type { SourceName } from "../source.ts";

type EventFields = Partial<Event>;

/** An event with the fields that the log reads. */
export function testEvent(source: SourceName, ordinal: number, more: EventFields = {}): Event {
  const { channel = "v1", kind = "build.started", session = "s" } = more;
  return Event.fromPartial({
    id: `${session}.${channel}.${ordinal}`,
    source,
    session,
    channel,
    ordinal: BigInt(ordinal),
    frame_ordinal: BigInt(ordinal),
    kind,
    ...more,
  });
}

export function newEvent(source: SourceName, ordinal: number, more: EventFields = {}): NewEvent {
  const event = testEvent(source, ordinal, more);
  const { session, channel, kind } = event;
  const cursor: Cursor = { session, ordinals: { [channel]: ordinal }, frames: { [channel]: ordinal } };
  const subject = messageSubject(source, channel, kind, kind.endsWith(".written") ? "text" : "facts");
  return { subject, session, event: encodeEvent(event), cursor };
}

/** What makes an event so large, also where it is compressed. */
export function incompressible(bytes: number): EventFields {
  return { original: Original.fromPartial({ type: "x", bytes: randomBytes(bytes), size: BigInt(bytes) }) };
}

/** A source's writer that keeps the sequence itself, as record does when all goes well. */
export function testWriter(writer: LogWriter, source: SourceName, { perMessage = 1 } = {}) {
  let lastSeq = 0;
  let ordinal = 0;
  const written: Offset[] = [];
  return {
    /** Where the appended events stand. */
    written: written as readonly Offset[],
    /** Appends events, so many in each message; resolves with the sequence of the last message. */
    async append(count: number, more: EventFields = {}): Promise<number> {
      const events = Array.from({ length: count }, () => newEvent(source, ++ordinal, more));
      for (let at = 0; at < count; at += perMessage) {
        const batch = events.slice(at, at + perMessage);
        lastSeq = acknowledged(await writer.publish(source, "w1", batch, lastSeq));
        written.push(...batch.map((_, index) => offsetOf(lastSeq, index)));
      }
      return lastSeq;
    },
  };
}

/** Publishes each event as a message of its own; resolves with the sequence of the last one. */
export async function publishEach(
  writer: LogWriter,
  source: SourceName,
  events: readonly NewEvent[],
  lastSeq: number,
): Promise<number> {
  let seq = lastSeq;
  for (const event of events) seq = acknowledged(await writer.publish(source, "w1", [event], seq));
  return seq;
}

/** Publishes events in their order, in as few messages as they fit into; resolves with the sequence of the last one. */
export async function publishTogether(
  writer: LogWriter,
  source: SourceName,
  events: readonly NewEvent[],
  lastSeq: number,
): Promise<number> {
  const messages: NewEvent[][] = [];
  for (const event of events) {
    const [first] = messages.at(-1) ?? [];
    if (first !== undefined && fitTogether(first, event)) messages.at(-1)?.push(event);
    else messages.push([event]);
  }
  let seq = lastSeq;
  for (const message of messages) seq = acknowledged(await writer.publish(source, "w1", message, seq));
  return seq;
}

/** The sequence of a message whose publish must have worked. */
export function acknowledged(published: PublishOutcome): number {
  if (published.outcome === "acknowledged") return published.seq;
  throw new Error(`not acknowledged but ${published.outcome}`, { cause: published });
}
