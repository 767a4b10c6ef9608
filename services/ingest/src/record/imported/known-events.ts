import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { Offset } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { LastNumbers } from "../frames/numbering.ts";
import type { LogHistoryReader } from "../journal/load-history.ts";
import { withoutDamage } from "./imported-events.ts";

/** The log's events of a session, read one by one beside the incoming ones. */
export type KnownEvents = {
  /** The next one; undefined: that was all. */
  peek(): Promise<Event | undefined>;
  skip(): void;
  /** The last numbers of the compared events. */
  readonly last: LastNumbers;
};

export type KnownEventsOptions = {
  readonly reader: LogHistoryReader;
  readonly source: SourceName;
  /** `afterOffset`: all of its events come after this offset. */
  readonly session: { readonly id: string; readonly afterOffset: Offset };
  readonly signal: AbortSignal;
};

export function knownEvents({ reader, source, session, signal }: KnownEventsOptions): KnownEvents {
  const ordinals = new Map<string, number>();
  const frames = new Map<string, number>();
  const events = read();
  let next: Promise<Event | undefined> | undefined;

  async function* read(): AsyncGenerator<Event, void> {
    const subjects = [sourceFilter(source)];
    const until = await reader.lastMatch(subjects);
    for await (const { event } of reader.history({ afterOffset: session.afterOffset, subjects }, until, signal)) {
      if (event.session === session.id) yield event;
    }
    signal.throwIfAborted();
  }

  return {
    async peek() {
      next ??= events.next().then(({ done, value }) => (done === true ? undefined : value));
      const event = await next;
      if (event !== undefined) {
        ordinals.set(event.channel, Number(event.ordinal));
        frames.set(event.channel, Number(event.frame_ordinal));
      }
      return event;
    },
    skip() {
      next = undefined;
    },
    get last() {
      return { ordinals: Object.fromEntries(ordinals), frames: Object.fromEntries(frames) };
    },
  };
}

export const nothingKnown: KnownEvents = {
  peek: async () => undefined,
  skip: () => {},
  last: { ordinals: {}, frames: {} },
};

/** Whether two events of a session are the same but for what an import changes: the source, what it adds to the start, and what was lost elsewhere. */
export function isSameEvent(one: Event, other: Event): boolean {
  return Buffer.compare(encodeEvent(anywhere(one)), encodeEvent(anywhere(other))) === 0;
}

function anywhere(event: Event): Event {
  const { channel, kind, detail } = event;
  const places = { id: "", source: "", ...(channel === ownChannel && { ordinal: 0n, frame_ordinal: 0n }) };
  if (kind !== "session.started" || detail?.$case !== "session_detail") return { ...withoutDamage(event), ...places };
  const { origin_session: _, ...value } = detail.value;
  return { ...event, ...places, detail: { ...detail, value: { ...value, labels: {} } } };
}
