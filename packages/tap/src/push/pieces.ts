import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";

/** The largest payload of one message, far below a gateway's limit of 4 MiB. */
const pieceBytes = 1024 * 1024;

/** No upstream is known to send more at once. The recorder keeps the pieces in memory until it has the last. */
export const maxBytes = 64 * 1024 * 1024;

/** Splits a frame, a described state or a recorded event into pieces with the same index. An item that is too large becomes a drop. */
export function* inPieces(item: Item): Generator<Item> {
  const whole = payloadOf(item);
  if (whole === undefined || whole.bytes.length <= pieceBytes) {
    yield item;
    return;
  }
  const { channel, bytes } = whole;
  if (bytes.length > maxBytes) {
    const value = { channel, count: 1n, bytes: BigInt(bytes.length), reason: "too_large" };
    yield { ...item, what: { $case: "dropped", value } };
    return;
  }
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    const end = start + pieceBytes;
    yield withPayload(item, bytes.subarray(start, end), end < bytes.length);
  }
}

/** The part of an item that may be large. `more`: it is a piece, and not the last one. */
export function payloadOf({
  what,
}: Pick<Item, "what">): { readonly channel: string; readonly bytes: Buffer; readonly more: boolean } | undefined {
  if (what?.$case === "frame") return what.value;
  if (what?.$case === "recorded") {
    // Only an event that comes alone may be a piece.
    const [bytes = Buffer.alloc(0)] = what.value.events;
    return { channel: "", bytes, more: what.value.more };
  }
  if (what?.$case !== "described") return undefined;
  const { channel, state, more = false } = what.value;
  return { channel, bytes: state, more };
}

/** The item with other bytes. */
export function withPayload(item: Item, bytes: Buffer, more: boolean): Item {
  const { what } = item;
  if (what?.$case === "frame") return { ...item, what: { $case: "frame", value: { ...what.value, bytes, more } } };
  if (what?.$case === "recorded") return { ...item, what: { $case: "recorded", value: { events: [bytes], more } } };
  if (what?.$case !== "described") return item;
  return { ...item, what: { $case: "described", value: { ...what.value, state: bytes, more } } };
}
