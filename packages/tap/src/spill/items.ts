import { type Dropped, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { payloadOf } from "../push/pieces.ts";
import type { TapItem } from "../tap.ts";

/** The approximate size of an item without its payload. */
export const overheadBytes = 256;

/** The approximate size of an item of any kind. */
export function sizeOf(item: TapItem): number {
  const { what } = item;
  if (what?.$case === "recorded") return what.value.events.reduce((sum, { length }) => sum + length, overheadBytes);
  const payload = payloadOf(item);
  return (
    overheadBytes + (payload === undefined ? Item.encode({ ...item, index: 0n }).finish().length : payload.bytes.length)
  );
}

/** Stands for lost items, of which only the last index is known. */
export function lost(index: bigint, reason: string, count = 0n): Item {
  const value: Dropped = { channel: "", count, bytes: 0n, reason };
  return { index, connection: "", at: undefined, what: { $case: "dropped", value } };
}
