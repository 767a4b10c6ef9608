import { Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import type { Cursor, NewMessage } from "@tapedeck/shared/log/log";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { Moment } from "@tapedeck/shared/time/moment";
import type { Fact } from "../../normalize/fact.ts";

/** Where Tapedeck itself speaks; counted through all sessions of a source. */
export const ownChannel = "tapedeck";

/** What record adds to a fact. */
export type Observed = {
  readonly observedAt: Moment;
  /** It happened at some time after this. */
  readonly notBefore?: Moment;
  readonly injected?: boolean;
  readonly redacted?: number;
};

/** A message for the log, and the event that it carries. */
export type Numbered = { readonly message: NewMessage; readonly event: Event };

/**
 * Gives events their place: session, ordinals without holes, ids, and the cursor that each message carries. Whatever it
 * numbers has to be appended to the writer in that order.
 */
export type Numbering = {
  readonly session: string;
  /** Last ordinal of a channel in this session. */
  ordinal(channel: string): number;
  /** A new session: every channel but Tapedeck's own starts from 1 again. */
  begin(session: string): void;
  /** An earlier session goes on, from the last numbers of its channels. */
  goOn(session: string, last: LastNumbers): void;
  /** All events of one frame; the first carries the original. */
  frame(channel: string, facts: readonly Fact[], original: Event["original"], observed: Observed): Numbered[];
  /** A later event of the channel's last frame. */
  laterPart(channel: string, part: number, fact: Fact, observed: Observed): Numbered;
  /** Something that Tapedeck says, about a session or, when that is empty, about the source. */
  own(session: string, fact: Fact, observed: Observed): Numbered;
  /**
   * An event of the session that was numbered elsewhere: it keeps its place, but for the source, and on Tapedeck's own
   * channel it gets the next one.
   */
  imported(event: Event, expires: boolean): Numbered;
  /** A new connection: its channels begin with a repeat. */
  unsettle(): void;
  /** The channel is past its repeat; the messages from here on say so. */
  settle(channel: string): void;
  isSettled(channel: string): boolean;
};

/** By channel. `unused`: how many of the ordinals may have been given to no message that the log has. */
export type LastNumbers = Pick<Cursor, "ordinals" | "frames" | "unused">;

export type TextLife = {
  /** Seconds that text lives in the log. */
  readonly textTtl: number;
  /** Channels that may carry it. Each cursor names them all, so that whoever reads it knows which may have gone on since. */
  readonly channels: readonly string[];
};

/** `life`: absent when text stays like all else. */
export function numbering(source: SourceName, from: Cursor | undefined, life?: TextLife): Numbering {
  const zeros = Object.fromEntries((life?.channels ?? []).map((channel) => [channel, 0]));
  let session = from?.session ?? "";
  let ordinals: Record<string, number> = { ...zeros, ...from?.ordinals };
  let frames: Record<string, number> = { ...zeros, ...from?.frames };
  let settled: readonly string[] = from?.settled ?? [];
  let texts: Record<string, number> = { ...from?.texts };
  let kept = from?.kept ?? 0;
  let unused: Record<string, number> = { ...from?.unused };

  const number = (
    channel: string,
    of: string,
    part: number,
    fact: Fact,
    observed: Observed,
    original: Event["original"],
    expires = false,
  ) => {
    const ordinal = (ordinals[channel] ?? 0) + 1;
    ordinals = { ...ordinals, [channel]: ordinal };
    if (part === 0) frames = { ...frames, [channel]: (frames[channel] ?? 0) + 1 };
    const event: Event = {
      ...base,
      ...told(fact),
      id: channel === ownChannel ? `${source}.${channel}.${ordinal}` : `${session}.${channel}.${ordinal}`,
      source,
      session: of,
      channel,
      ordinal: BigInt(ordinal),
      frame_ordinal: BigInt(frames[channel] ?? 0),
      part,
      occurred_at: fact.occurredAt ?? observed.observedAt,
      time_source: timeSource(fact, observed),
      not_before: fact.notBefore ?? observed.notBefore,
      observed_at: observed.observedAt,
      injected: observed.injected ?? false,
      redacted: observed.redacted ?? 0,
      original,
    };
    return withMessage(event, expires);
  };

  const withMessage = (event: Event, expires: boolean): Numbered => {
    if (!(life && expires)) kept++;
    if (life && expires) texts = { ...texts, [event.channel]: (texts[event.channel] ?? 0) + 1 };
    const cursor: Cursor = {
      ...{ session, ordinals, frames, kept },
      ...(settled.length > 0 && { settled }),
      ...(life && { textTtl: life.textTtl, texts }),
      ...(Object.keys(unused).length > 0 && { unused }),
    };
    const message: NewMessage = {
      ...{ subject: eventSubject(source, event.channel, event.kind), event: encodeEvent(event), cursor },
      ...(life && expires && { ttlSeconds: life.textTtl }),
    };
    return { event, message };
  };

  return {
    get session() {
      return session;
    },
    ordinal: (channel) => ordinals[channel] ?? 0,
    begin(id) {
      session = id;
      texts = {};
      unused = {};
      ordinals = { ...zeros, ...pick(ordinals, ownChannel) };
      frames = { ...zeros, ...pick(frames, ownChannel) };
    },
    goOn(id, last) {
      session = id;
      texts = {};
      unused = { ...last.unused };
      ordinals = { ...zeros, ...last.ordinals, ...pick(ordinals, ownChannel) };
      frames = { ...zeros, ...last.frames, ...pick(frames, ownChannel) };
    },
    frame(channel, facts, original, observed) {
      const expires = isText(facts);
      return facts.map((fact, part) =>
        number(channel, session, part, fact, observed, part === 0 ? original : undefined, expires),
      );
    },
    laterPart: (channel, part, fact, observed) => number(channel, session, part, fact, observed, undefined),
    own: (of, fact, observed) => number(ownChannel, of, 0, fact, observed, undefined),
    imported(event, expires) {
      const { channel } = event;
      const isOwn = channel === ownChannel;
      const ordinal = isOwn ? (ordinals[channel] ?? 0) + 1 : Number(event.ordinal);
      const left = ordinal - (ordinals[channel] ?? 0) - 1;
      if (left > 0) unused = { ...unused, [channel]: (unused[channel] ?? 0) + left };
      const frame = isOwn ? (frames[channel] ?? 0) + 1 : Number(event.frame_ordinal);
      ordinals = { ...ordinals, [channel]: ordinal };
      frames = { ...frames, [channel]: frame };
      const id = `${isOwn ? source : session}.${channel}.${ordinal}`;
      return withMessage({ ...event, id, source, ordinal: BigInt(ordinal), frame_ordinal: BigInt(frame) }, expires);
    },
    unsettle() {
      settled = [];
    },
    settle(channel) {
      if (!settled.includes(channel)) settled = [...settled, channel];
    },
    isSettled: (channel) => settled.includes(channel),
  };
}

const base = Event.create();

const textKinds: readonly string[] = ["log.written", "terminal.written"];

/** A frame that tells nothing but text; of any other all parts stay, so that none is left without the bytes. */
export function isText(facts: readonly { readonly kind: string }[]): boolean {
  return facts.every(({ kind }) => textKinds.includes(kind));
}

/** Channels' numbers as if this many messages of each had come after them that are gone. Tapedeck's own never expire. */
export function raised({ ordinals, frames, unused = {} }: LastNumbers, by: number): LastNumbers {
  if (by === 0) return { ordinals, frames, unused };
  const raise = (all: LastNumbers["ordinals"]) =>
    Object.fromEntries(
      Object.entries(all).map(([channel, number]) => [channel, channel === ownChannel ? number : number + by]),
    );
  const expiring = Object.keys(ordinals).filter((channel) => channel !== ownChannel);
  const left = Object.fromEntries(expiring.map((channel) => [channel, (unused[channel] ?? 0) + by]));
  return { ordinals: raise(ordinals), frames: raise(frames), unused: { ...unused, ...left } };
}

/** A cursor from which as many ordinals of each channel are left out as may have been given to what has expired since. */
export function raisedCursor(cursor: Cursor, by: number): Cursor {
  return { ...cursor, ...raised(cursor, by) };
}

function told({ kind, subject = "", outcome = 0, error, summary, operation, inferred = false, detail }: Fact) {
  return { kind, subject, outcome, error, summary, operation, inferred, detail };
}

function timeSource({ occurredAt, notBefore }: Fact, observed: Observed): Event["time_source"] {
  if ((notBefore ?? observed.notBefore) !== undefined) return TimeSource.TIME_SOURCE_INTERVAL;
  return occurredAt === undefined ? TimeSource.TIME_SOURCE_OBSERVED : TimeSource.TIME_SOURCE_UPSTREAM;
}

function pick(numbers: Readonly<Record<string, number>>, name: string): Record<string, number> {
  const number = numbers[name];
  return number === undefined ? {} : { [name]: number };
}
