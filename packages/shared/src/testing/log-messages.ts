import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "../events/codec.ts";
import type { Cursor, LogWriter, NewMessage, PublishOutcome } from "../log/log.ts";
import { eventSubject } from "../log/subjects.ts";
import type { SourceName } from "../source.ts";

type EventFields = Partial<Event>;

/** An event with as much as the log looks at. */
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

export function testMessage(source: SourceName, ordinal: number, more: EventFields = {}): NewMessage {
  const event = testEvent(source, ordinal, more);
  const cursor: Cursor = {
    session: event.session,
    ordinals: { [event.channel]: ordinal },
    frames: { [event.channel]: ordinal },
  };
  return { subject: eventSubject(source, event.channel, event.kind), event: encodeEvent(event), cursor };
}

/** A source's writer that keeps the sequence itself, as record does when all goes well. */
export function testWriter(writer: LogWriter, source: SourceName) {
  let lastSeq = 0;
  let ordinal = 0;
  return {
    /** Appends events in one publish; resolves with the sequence of the last. */
    async append(count: number, more: EventFields = {}): Promise<number> {
      const messages = Array.from({ length: count }, () => testMessage(source, ++ordinal, more));
      lastSeq = acknowledged(await writer.publish(source, "w1", messages, lastSeq));
      return lastSeq;
    },
  };
}

/** The last sequence of a publish that must have worked. */
export function acknowledged(published: PublishOutcome): number {
  if (published.outcome === "acknowledged") return published.lastSeq;
  throw new Error(`not acknowledged but ${published.outcome}`, { cause: published });
}
