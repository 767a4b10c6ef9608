// The numbers of a source's events, and the cursor from which a restarted recorder continues.
//
//   frame (v1, 3rd)  -->  events v1.7, v1.8 (frame_ordinal 3, parts 0 and 1)  -->  each with the cursor as of itself
//
// 1. Ordinals of a channel only rise. Those that are skipped on purpose are counted in the cursor (`unused`), so any other
//    hole was erased, has expired, or is a loss.
// 2. Each event's cursor says all numbers as of that event, so the last message of a source has all that a start has to know of them,
//    unless that message has expired or was lost (journal/load-history.ts).
// 3. Numbered events are appended to the writer in the order in which they were numbered.
// 4. The ordinals of Tapedeck's own channel belong to the source and go on through all of its sessions.
// How cursors find damage: docs/decisions/0019-damage-is-found-by-cursors.md.
import { type Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import { isTextKind, ownChannel } from "@tapedeck/shared/events/kinds";
import type { Cursor, NewEvent } from "@tapedeck/shared/log/log";
import { messageSubject, type RetentionClass } from "@tapedeck/shared/log/subjects";
import { ownValue } from "@tapedeck/shared/own-value";
import type { SourceName } from "@tapedeck/shared/source";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../normalize/fact.ts";

/** The fields that the recorder adds to a fact. */
export type ObservedFields = {
  readonly observedAt: Timestamp;
  /** It happened at some time after this. */
  readonly notBefore?: Timestamp;
  readonly injected?: boolean;
  readonly redacted?: number;
  /** See Event.single_item in event.proto. */
  readonly singleItem?: boolean;
};

/** An event, and the form in which it is written to the log. */
export type Numbered = { readonly written: NewEvent; readonly event: Event };

/** By channel. `unused`: how many of the ordinals may belong to no event in the log. */
export type LastNumbers = Pick<Cursor, "ordinals" | "frames" | "unused">;

export type TextLife = {
  /** Seconds that text lives in the log. */
  readonly textTtl: number;
  /** Channels that may carry text. Each cursor names all of them, so that its reader knows which may have advanced since. */
  readonly channels: readonly string[];
};

/** Where an event belongs: its session, which is empty for facts about the source, and its part within the frame. */
type EventSlot = { readonly channel: string; readonly session: string; readonly part: number };

/** Gives events their session, ordinals, ids and cursors. */
export class Numbering {
  readonly #source: SourceName;
  /** Subjects of the messages with frames. */
  readonly #subjects: Readonly<Record<RetentionClass, string>>;
  readonly #life: TextLife | undefined;
  readonly #zeros: Readonly<Record<string, number>>;
  #session: string;
  #ordinals: Readonly<Record<string, number>>;
  #frames: Readonly<Record<string, number>>;
  #settled: readonly string[];
  #items: Readonly<Record<string, number>>;
  #texts: Readonly<Record<string, number>>;
  #retained: number;
  #unused: Readonly<Record<string, number>>;

  /** Continues after the cursor `from`. `life`: absent if text never expires. */
  constructor(source: SourceName, from: Cursor | undefined, life?: TextLife) {
    this.#source = source;
    this.#subjects = { facts: messageSubject(source, "", "", "facts"), text: messageSubject(source, "", "", "text") };
    this.#life = life;
    this.#zeros = Object.fromEntries((life?.channels ?? []).map((channel) => [channel, 0]));
    this.#session = from?.session ?? "";
    this.#ordinals = { ...this.#zeros, ...from?.ordinals };
    this.#frames = { ...this.#zeros, ...from?.frames };
    this.#settled = from?.settled ?? [];
    this.#items = { ...from?.items };
    this.#texts = { ...from?.texts };
    this.#retained = from?.kept ?? 0;
    this.#unused = { ...from?.unused };
  }

  get session(): string {
    return this.#session;
  }

  /** Last ordinal of a channel in this session. */
  ordinal(channel: string): number {
    return ownValue(this.#ordinals, channel) ?? 0;
  }

  /** Begins a new session. Every channel but Tapedeck's own starts from 1 again. */
  begin(session: string): void {
    this.continueSession(session, { ordinals: {}, frames: {} });
  }

  /** Continues an earlier session from the last numbers of its channels. */
  continueSession(session: string, last: LastNumbers): void {
    this.#session = session;
    this.#texts = {};
    this.#unused = { ...last.unused };
    this.#ordinals = { ...this.#zeros, ...last.ordinals, ...pick(this.#ordinals, ownChannel) };
    this.#frames = { ...this.#zeros, ...last.frames, ...pick(this.#frames, ownChannel) };
  }

  /** Numbers all events of one frame. The first carries the original. */
  frame(channel: string, facts: readonly Fact[], original: Event["original"], observed: ObservedFields): Numbered[] {
    const retention = isTextFrame(facts) ? "text" : "facts";
    return facts.map((fact, part) => {
      const slot = { channel, session: this.#session, part };
      return this.#written(this.#event(slot, fact, observed, part === 0 ? original : undefined), retention);
    });
  }

  /** Numbers a later event of the channel's last frame. */
  laterPart(channel: string, part: number, fact: Fact, observed: ObservedFields): Numbered {
    return this.#written(this.#event({ channel, session: this.#session, part }, fact, observed, undefined), "facts");
  }

  /** Numbers an event that Tapedeck itself states, about a session or, if `session` is empty, about the source. */
  own(session: string, fact: Fact, observed: ObservedFields): Numbered {
    return this.#written(this.#event({ channel: ownChannel, session, part: 0 }, fact, observed, undefined), "facts");
  }

  /**
   * Numbers an event of the session that was numbered elsewhere. It keeps its numbers and gets this source. On Tapedeck's
   * own channel it gets the next ordinal.
   */
  imported(event: Event, retention: RetentionClass): Numbered {
    const { channel } = event;
    const isOwn = channel === ownChannel;
    const last = this.ordinal(channel);
    const ordinal = isOwn ? last + 1 : Number(event.ordinal);
    const skipped = ordinal - last - 1;
    if (skipped > 0) this.#unused = { ...this.#unused, [channel]: (ownValue(this.#unused, channel) ?? 0) + skipped };
    const frame = isOwn ? (ownValue(this.#frames, channel) ?? 0) + 1 : Number(event.frame_ordinal);
    this.#ordinals = { ...this.#ordinals, [channel]: ordinal };
    this.#frames = { ...this.#frames, [channel]: frame };
    const source = this.#source;
    const id = `${isOwn ? source : this.#session}.${channel}.${ordinal}`;
    return this.#written({ ...event, id, source, ordinal: BigInt(ordinal), frame_ordinal: BigInt(frame) }, retention);
  }

  /** A new connection: its channels begin with a repeat. */
  repeatBegan(): void {
    this.#settled = [];
    this.#items = {};
  }

  /** The channel has finished its repeat. The events from here on carry that mark. */
  repeatEnded(channel: string): void {
    if (!this.#settled.includes(channel)) this.#settled = [...this.#settled, channel];
  }

  isRepeatOver(channel: string): boolean {
    return this.#settled.includes(channel);
  }

  /** Notes the tap's item that the channel's next events come from. They carry it. */
  took(channel: string, item: bigint): void {
    this.#items = { ...this.#items, [channel]: Number(item) };
  }

  /** The tap's item that was noted last for this channel of the connection; 0 if there is none. */
  lastItem(channel: string): bigint {
    return BigInt(ownValue(this.#items, channel) ?? 0);
  }

  #event(
    { channel, session, part }: EventSlot,
    fact: Fact,
    observed: ObservedFields,
    original: Event["original"],
  ): Event {
    const source = this.#source;
    const ordinal = this.ordinal(channel) + 1;
    this.#ordinals = { ...this.#ordinals, [channel]: ordinal };
    if (part === 0) this.#frames = { ...this.#frames, [channel]: (ownValue(this.#frames, channel) ?? 0) + 1 };
    const { subject = "", outcome = 0, inferred = false } = fact;
    // All fields are named here, because this is made for every event.
    return {
      id: channel === ownChannel ? `${source}.${channel}.${ordinal}` : `${this.#session}.${channel}.${ordinal}`,
      source,
      session,
      channel,
      ordinal: BigInt(ordinal),
      frame_ordinal: BigInt(ownValue(this.#frames, channel) ?? 0),
      part,
      kind: fact.kind,
      subject,
      outcome,
      error: fact.error,
      summary: fact.summary,
      occurred_at: fact.occurredAt ?? observed.observedAt,
      time_source: timeSource(fact, observed),
      not_before: fact.notBefore ?? observed.notBefore,
      observed_at: observed.observedAt,
      operation: fact.operation,
      inferred,
      injected: observed.injected ?? false,
      redacted: observed.redacted ?? 0,
      single_item: observed.singleItem,
      detail: fact.detail,
      original,
      _unknownFields: {},
    };
  }

  #written(event: Event, retention: RetentionClass): Numbered {
    const expiring = retention === "text" ? this.#life : undefined;
    if (expiring === undefined) this.#retained++;
    else this.#texts = { ...this.#texts, [event.channel]: (ownValue(this.#texts, event.channel) ?? 0) + 1 };
    const written: NewEvent = {
      subject:
        event.channel === ownChannel
          ? messageSubject(this.#source, ownChannel, event.kind, retention)
          : this.#subjects[retention],
      session: event.session,
      event: encodeEvent(event),
      cursor: this.#cursor(),
      ...(expiring && { ttlSeconds: expiring.textTtl }),
    };
    return { event, written };
  }

  #cursor(): Cursor {
    return {
      session: this.#session,
      ordinals: this.#ordinals,
      frames: this.#frames,
      kept: this.#retained,
      ...(this.#settled.length > 0 && { settled: this.#settled }),
      ...(Object.keys(this.#items).length > 0 && { items: this.#items }),
      ...(this.#life && { textTtl: this.#life.textTtl, texts: this.#texts }),
      ...(Object.keys(this.#unused).length > 0 && { unused: this.#unused }),
    };
  }
}

/** The frame carries only text. All parts of any other frame stay, so that none is left without the bytes. */
export function isTextFrame(facts: readonly { readonly kind: string }[]): boolean {
  return facts.every(({ kind }) => isTextKind(kind));
}

/** The numbers, raised as if this many more events of each channel had been written and expired. Tapedeck's own never expire. */
export function raised({ ordinals, frames, unused = {} }: LastNumbers, by: number): LastNumbers {
  if (by === 0) return { ordinals, frames, unused };
  const raise = (all: LastNumbers["ordinals"]) =>
    Object.fromEntries(
      Object.entries(all).map(([channel, number]) => [channel, channel === ownChannel ? number : number + by]),
    );
  const expiring = Object.keys(ordinals).filter((channel) => channel !== ownChannel);
  const left = Object.fromEntries(expiring.map((channel) => [channel, (ownValue(unused, channel) ?? 0) + by]));
  return { ordinals: raise(ordinals), frames: raise(frames), unused: { ...unused, ...left } };
}

/** A cursor that skips as many ordinals of each channel as may have been used by events that expired since. */
export function raisedCursor(cursor: Cursor, by: number): Cursor {
  return { ...cursor, ...raised(cursor, by) };
}

function timeSource({ occurredAt, notBefore }: Fact, observed: ObservedFields): Event["time_source"] {
  if ((notBefore ?? observed.notBefore) !== undefined) return TimeSource.TIME_SOURCE_INTERVAL;
  return occurredAt === undefined ? TimeSource.TIME_SOURCE_OBSERVED : TimeSource.TIME_SOURCE_UPSTREAM;
}

function pick(numbers: Readonly<Record<string, number>>, name: string): Record<string, number> {
  const number = ownValue(numbers, name);
  return number === undefined ? {} : { [name]: number };
}
