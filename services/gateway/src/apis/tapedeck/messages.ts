import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { EventsResponse, type GetStateResponse } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Event } from "@tapedeck/shared/events/codec";
import { writeEventJson } from "@tapedeck/shared/events/json";
import type { HeldEvent, RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { type LoadedState, stateJson } from "./state.ts";

/** The messages of a subscription: one, or several that are there at the same time. */
export type SubscriptionMessages = AsyncIterable<SubscriptionMessage | readonly SubscriptionMessage[]>;

export function allOf(some: SubscriptionMessage | readonly SubscriptionMessage[]): readonly SubscriptionMessage[] {
  return "type" in some ? [some] : some;
}

/** A message to a subscriber, on any transport. Each format is rendered once, when it is first read. */
export type SubscriptionMessage = {
  readonly type: "event" | "caught_up" | "bookmark" | "complete" | "state";
  readonly position: string;
  /** For an event: when it was recorded, by the log's clock. */
  readonly recordedAt?: Date;
  /** The message of WebSocket, server-sent events and NDJSON, without an id. */
  readonly json: string;
  /**
   * The message of gRPC: an encoded tapedeck.v1.EventsResponse of at most so many bytes. A larger event lacks some of its parts.
   * @throws TapedeckError limit_exceeded for a larger state
   */
  readonly protoUpTo: (maxBytes: number) => Uint8Array;
};

export function markMessage(
  type: "caught_up" | "bookmark" | "complete",
  epoch: string,
  offset: Offset,
): SubscriptionMessage {
  const position = formatPosition({ epoch, offset });
  const json = () => `{"type":"${type}","position":"${position}"}`;
  return message({ type, position }, json, () => ({ $case: type, value: {} }));
}

export function stateMessage(read: LoadedState): SubscriptionMessage {
  const { source, position, upstream, rows } = read;
  return message(
    { type: "state", position },
    () => {
      const state = JSON.stringify(stateJson(upstream, rows));
      return `{"type":"state","position":"${position}","source":"${source}","state":${state}}`;
    },
    () => ({ $case: "state", value: stateProto(read) }),
  );
}

/** State in gRPC: in the upstream's own messages. */
export function stateProto({
  session = "",
  at = "",
  sessionEnded,
  notHeardSince,
  heardAt,
  rows,
  ...read
}: LoadedState): GetStateResponse {
  const { source, position, upstream } = read;
  return {
    source,
    session,
    position,
    at,
    upstream,
    session_ended: sessionEnded,
    not_heard_since: notHeardSince,
    heard_at: { ...heardAt },
    rows: rows.map(({ type, bytes, ...row }) => ({
      ...row,
      message: { type_url: `type.googleapis.com/${type}`, value: asBuffer(bytes) },
    })),
  };
}

// All subscribers share live events, so each of these has one message.
const messages = new WeakMap<HeldEvent, SubscriptionMessage>();

/** `original` includes the upstream's own bytes. Such messages are rare, and not shared. */
export function eventMessage(
  epoch: string,
  held: HeldEvent,
  recorded: RecordedEvent,
  { original }: { readonly original: boolean },
): SubscriptionMessage {
  if (original || !held.isShared) return new EventMessage(epoch, recorded, original);
  let message = messages.get(held);
  if (message === undefined) {
    message = new EventMessage(epoch, recorded, false);
    messages.set(held, message);
  }
  return message;
}

class EventMessage implements SubscriptionMessage {
  readonly type = "event";
  readonly position: string;
  readonly #recorded: RecordedEvent;
  readonly #epoch: string;
  readonly #original: boolean;
  #json: string | undefined;
  #proto: Uint8Array | undefined;

  constructor(epoch: string, recorded: RecordedEvent, original: boolean) {
    this.position = formatPosition({ epoch, offset: recorded.offset });
    this.#recorded = recorded;
    this.#epoch = epoch;
    this.#original = original;
  }

  get recordedAt(): Date {
    return this.#recorded.recordedAt;
  }

  get json(): string {
    this.#json ??= `{"type":"event","position":"${this.position}","event":${this.#eventJson()}}`;
    return this.#json;
  }

  #whole(): Uint8Array {
    this.#proto ??= EventsResponse.encode({ position: this.position, body: this.#body() }).finish();
    return this.#proto;
  }

  /** A client that can't take a message would get it again whenever it resumes, and never come further. */
  protoUpTo(maxBytes: number): Uint8Array {
    let proto = this.#whole();
    let { event } = this.#visible();
    const omitted: string[] = [];
    for (const field of omissible) {
      if (proto.byteLength <= maxBytes) break;
      if (event[field] === undefined) continue;
      event = { ...event, [field]: field === "original" ? withoutBytes(event.original) : undefined };
      omitted.push(field);
      const body = { $case: "event", value: { ...this.#visible(), event, omitted } } as const;
      proto = EventsResponse.encode({ position: this.position, body }).finish();
    }
    return proto;
  }

  #eventJson(): string {
    return writeEventJson(this.#recorded, this.#epoch, { original: this.#original });
  }

  #body(): NonNullable<EventsResponse["body"]> {
    return { $case: "event", value: this.#visible() };
  }

  #visible() {
    const { recordedAt, event } = this.#recorded;
    const { seconds, nanos } = timestampFromDate(recordedAt);
    const visible: Event = this.#original ? event : { ...event, original: undefined };
    return { recorded_at: { seconds, nanos }, event: visible, omitted: [] };
  }
}

/** The parts of an event that have no bound of their own, the largest first. */
const omissible = ["original", "detail", "error", "operation"] as const satisfies readonly (keyof Event)[];

function withoutBytes(original: Event["original"]): Event["original"] {
  return original && { ...original, bytes: Buffer.alloc(0) };
}

function message(
  head: Pick<SubscriptionMessage, "type" | "position">,
  toJson: () => string,
  toBody: () => NonNullable<EventsResponse["body"]>,
): SubscriptionMessage {
  let json: string | undefined;
  let proto: Uint8Array | undefined;
  return {
    ...head,
    get json() {
      json ??= toJson();
      return json;
    },
    protoUpTo(maxBytes) {
      proto ??= EventsResponse.encode({ position: head.position, body: toBody() }).finish();
      const { byteLength } = proto;
      if (byteLength <= maxBytes) return proto;
      const how = "set max_message_bytes to what your client accepts, or read the state over HTTP";
      throw new TapedeckError(
        "limit_exceeded",
        `the ${head.type} has ${byteLength} bytes, more than ${maxBytes}: ${how}`,
      );
    },
  };
}
