import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { EventsResponse, type GetStateResponse } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { writeEventJson } from "@tapedeck/shared/events/json";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { type StateRead, stateJson } from "./state.ts";

/** A message to a subscriber, on any transport. Each format is rendered once, when it is first read. */
export type SubscriptionMessage = {
  readonly type: "event" | "caught_up" | "bookmark" | "complete" | "state";
  readonly position: string;
  /** For an event: when it was recorded, by the log's clock. */
  readonly recordedAt?: Date;
  /** The message of WebSocket, server-sent events and NDJSON, without an id. */
  readonly json: string;
  /** The message of gRPC: an encoded tapedeck.v1.EventsResponse. */
  readonly proto: Uint8Array;
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

export function stateMessage(read: StateRead): SubscriptionMessage {
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
  rows,
  ...read
}: StateRead): GetStateResponse {
  const { source, position, upstream } = read;
  return {
    ...{ source, session, position, at, upstream },
    session_ended: sessionEnded,
    not_heard_since: notHeardSince,
    rows: rows.map(({ type, bytes, ...row }) => ({
      ...row,
      message: { type_url: `type.googleapis.com/${type}`, value: asBuffer(bytes) },
    })),
  };
}

// All subscribers share live events, so each event has one message.
const messages = new WeakMap<RecordedEvent, SubscriptionMessage>();

/** `original` includes the upstream's own bytes. Such messages are rare, and not shared. */
export function eventMessage(
  epoch: string,
  recorded: RecordedEvent,
  { original }: { readonly original: boolean },
): SubscriptionMessage {
  const known = original ? undefined : messages.get(recorded);
  if (known !== undefined) return known;
  const { offset, recordedAt, event } = recorded;
  const position = formatPosition({ epoch, offset });
  const made = message(
    { type: "event", position, recordedAt },
    () => {
      const json = writeEventJson(recorded, epoch, { original });
      return `{"type":"event","position":"${position}","event":${json}}`;
    },
    () => {
      const { seconds, nanos } = timestampFromDate(recordedAt);
      const shown = original ? event : { ...event, original: undefined };
      return { $case: "event", value: { recorded_at: { seconds, nanos }, event: shown } };
    },
  );
  if (!original) messages.set(recorded, made);
  return made;
}

function message(
  head: Omit<SubscriptionMessage, "json" | "proto">,
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
    get proto() {
      proto ??= EventsResponse.encode({ position: head.position, body: toBody() }).finish();
      return proto;
    },
  };
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
