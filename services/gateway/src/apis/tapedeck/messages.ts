import { eventToJson } from "@tapedeck/shared/events/json";
import type { Recorded } from "@tapedeck/shared/log/log";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { StateAnswer } from "./state.ts";

/** What a subscriber gets, on every transport; each format is rendered once, whoever asks for it first. */
export type SubscriptionMessage = {
  readonly type: "event" | "caught_up" | "bookmark" | "complete" | "state";
  readonly position: string;
  /** Of an event: the log's own time of it. */
  readonly recordedAt?: Date;
  /** The message of WebSocket, server-sent events and NDJSON, without an id. */
  readonly json: string;
};

export function markMessage(
  type: "caught_up" | "bookmark" | "complete",
  epoch: string,
  seq: number,
): SubscriptionMessage {
  const position = formatPosition({ epoch, seq });
  return { type, position, json: `{"type":"${type}","position":"${position}"}` };
}

export function stateMessage({ source, position, state }: StateAnswer): SubscriptionMessage {
  const json = `{"type":"state","position":"${position}","source":"${source}","state":${JSON.stringify(state)}}`;
  return { type: "state", position, json };
}

// Live events are shared by all subscribers, so each has one message.
const messages = new WeakMap<Recorded, SubscriptionMessage>();

/** With `original` the upstream's own bytes are in it; such messages are rare, and not shared. */
export function eventMessage(
  epoch: string,
  recorded: Recorded,
  { original }: { readonly original: boolean },
): SubscriptionMessage {
  const known = original ? undefined : messages.get(recorded);
  if (known !== undefined) return known;
  const position = formatPosition({ epoch, seq: recorded.seq });
  let json: string | undefined;
  const message: SubscriptionMessage = {
    type: "event",
    position,
    recordedAt: recorded.recordedAt,
    get json() {
      const event = () => JSON.stringify(eventToJson(recorded, epoch, { original }));
      json ??= `{"type":"event","position":"${position}","event":${event()}}`;
      return json;
    },
  };
  if (!original) messages.set(recorded, message);
  return message;
}
