import type { Dropped } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { ItemContent } from "../connection-items.ts";
import { payloadOf } from "../push/pieces.ts";
import type { TapItem } from "../tap.ts";
import { sizeOf } from "./items.ts";

/**
 * What a full spill does with an item of each kind. Content is dropped and counted. What says how connections began and
 * ended is needed to read the content, so it waits for room; a connection of which nothing was kept comes to nothing.
 */
const whenFull: { readonly [Kind in ItemContent["$case"]]: "drop" | "defer" } = {
  frame: "drop",
  described: "drop",
  recorded: "drop",
  recorded_end: "defer",
  dialled: "defer",
  identified: "defer",
  channel_ended: "defer",
  channel_filled: "defer",
  labelled: "defer",
  closed: "defer",
  dropped: "defer",
};

type Entry =
  | { readonly what: "item"; readonly item: TapItem; readonly bytes: number }
  | { readonly what: "drop"; readonly count: DropCount };

type DropCount = Pick<TapItem, "connection" | "at"> & {
  readonly channel: string;
  readonly reason: string;
  readonly count: bigint;
  readonly bytes: bigint;
};

/** The reason of a drop. It distinguishes a dropped state from a dropped frame of a channel with the same name. */
const reasons: { readonly [Kind in ItemContent["$case"]]?: string } = {
  frame: "spill_full",
  described: "spill_full: answers about its state",
  recorded: "spill_full",
};

/**
 * The items that a full spill has no room for: counts of what it drops, and what waits for room, in order. At most one item
 * of a kind and channel waits for each connection, and of the connections only the last that was kept and the current one.
 */
export class DeferredItems {
  readonly #entries = new Map<string, Entry>();
  #total = 0n;
  #bytes = 0;

  /** All items that were dropped, reported or not. */
  get total(): bigint {
    return this.#total;
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** The size of what waits. */
  get bytes(): number {
    return this.#bytes;
  }

  take(item: TapItem): void {
    const kind = item.what?.$case;
    if (kind === undefined) return;
    if (whenFull[kind] === "drop") this.#drop(item, kind);
    else if (kind === "closed" && this.#entries.has(keyOf(item.connection, "dialled", "")))
      this.#forget(item.connection);
    else this.#defer(item, kind);
  }

  /** Gives everything that waits, and one item for each count, which are then reported. */
  release(): readonly TapItem[] {
    const items = [...this.#entries.values()].map((entry) =>
      entry.what === "item" ? entry.item : droppedItem(entry.count),
    );
    this.#entries.clear();
    this.#bytes = 0;
    return items;
  }

  #drop(item: TapItem, kind: ItemContent["$case"]): void {
    const { connection, at } = item;
    const channel = payloadOf(item)?.channel ?? "";
    const reason = reasons[kind] ?? "spill_full";
    this.#total++;
    this.#count({ connection, at, channel, reason, count: 1n, bytes: BigInt(payloadOf(item)?.bytes.length ?? 0) });
  }

  #count(added: DropCount): void {
    const key = keyOf(added.connection, added.reason, added.channel);
    const entry = this.#entries.get(key);
    const before = entry?.what === "drop" ? entry.count : undefined;
    const count = (before?.count ?? 0n) + added.count;
    const bytes = (before?.bytes ?? 0n) + added.bytes;
    this.#entries.set(key, { what: "drop", count: { ...added, count, bytes } });
  }

  #defer(item: TapItem, kind: ItemContent["$case"]): void {
    const key = keyOf(item.connection, kind, channelOf(item));
    const before = this.#entries.get(key);
    const bytes = sizeOf(item);
    this.#bytes += bytes - (before?.what === "item" ? before.bytes : 0);
    this.#entries.set(key, { what: "item", item, bytes });
  }

  /** The connection came and went while the spill was full. The counts of what it brought stay. */
  #forget(connection: string): void {
    for (const [key, entry] of [...this.#entries]) {
      const of = entry.what === "item" ? entry.item.connection : entry.count.connection;
      if (of !== connection) continue;
      this.#entries.delete(key);
      if (entry.what === "item") this.#bytes -= entry.bytes;
      else this.#count({ ...entry.count, connection: "" });
    }
  }
}

function droppedItem({ connection, at, channel, reason, count, bytes }: DropCount): TapItem {
  const value: Dropped = { channel, count, bytes, reason };
  return { connection, at, what: { $case: "dropped", value } };
}

function channelOf({ what }: TapItem): string {
  return what !== undefined && "channel" in what.value ? what.value.channel : "";
}

function keyOf(connection: string, kind: string, channel: string): string {
  return JSON.stringify([connection, kind, channel]);
}
