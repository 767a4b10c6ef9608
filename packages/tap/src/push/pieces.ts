import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";

/** What travels at once, so that no message comes near a gateway's limit of 4 MiB. */
const pieceBytes = 1024 * 1024;

/** No upstream has been seen to say so much at once. The recorder keeps the pieces in memory until it has the last. */
export const mostBytes = 64 * 1024 * 1024;

/** A frame, a described state or a recorded event in pieces that all have its index. What is too large altogether is told as dropped. */
export function* inPieces(item: Item): Generator<Item> {
  const whole = payloadOf(item);
  if (whole === undefined || whole.bytes.length <= pieceBytes) {
    yield item;
    return;
  }
  const { channel, bytes } = whole;
  if (bytes.length > mostBytes) {
    const value = { channel, count: 1n, bytes: BigInt(bytes.length), reason: "too_large" };
    yield { ...item, what: { $case: "dropped", value } };
    return;
  }
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    const end = start + pieceBytes;
    yield withPayload(item, bytes.subarray(start, end), end < bytes.length);
  }
}

/** What of an item may be large; `more` when it is a piece and not the last. */
export function payloadOf({
  what,
}: Pick<Item, "what">): { readonly channel: string; readonly bytes: Buffer; readonly more: boolean } | undefined {
  if (what?.$case === "frame") return what.value;
  if (what?.$case === "recorded") {
    // Only one that comes alone may be a piece.
    const [bytes = Buffer.alloc(0)] = what.value.events;
    return { channel: "", bytes, more: what.value.more };
  }
  if (what?.$case !== "described") return undefined;
  const { channel, state, more = false } = what.value;
  return { channel, bytes: state, more };
}

/** The same item with other bytes. */
export function withPayload(item: Item, bytes: Buffer, more: boolean): Item {
  const { what } = item;
  if (what?.$case === "frame") return { ...item, what: { $case: "frame", value: { ...what.value, bytes, more } } };
  if (what?.$case === "recorded") return { ...item, what: { $case: "recorded", value: { events: [bytes], more } } };
  if (what?.$case !== "described") return item;
  return { ...item, what: { $case: "described", value: { ...what.value, state: bytes, more } } };
}
