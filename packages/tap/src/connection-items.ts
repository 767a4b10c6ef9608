import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import type { TapItem } from "./tap.ts";

/** The content of an item, without the connection and the time. */
export type ItemContent = NonNullable<Item["what"]>;
export type EmitContent = (what: ItemContent) => void;

/** A new connection's id, and a function that emits items under that id at the current time. */
export function connectionItems(
  emit: (item: TapItem) => void,
  now: () => Timestamp,
): { readonly id: string; readonly emit: EmitContent } {
  const id = ulid();
  return { id, emit: (what) => emit({ connection: id, at: now(), what }) };
}
