import type { HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { ownValue } from "@tapedeck/shared/own-value";
import type { Base64 } from "../states/base64.ts";
import { listedBefore, type PartialDescription, withoutDescription } from "../states/description.ts";

/**
 * The pods or images of a host, by id. A host has thousands of pods and an event changes one, so they are kept in
 * buckets: a change copies one bucket and not all items.
 */
export type HostInventory = {
  readonly buckets: Readonly<Record<string, Bucket>>;
  readonly describing: PartialDescription | null;
};

type Bucket = Readonly<Record<string, Base64>>;

export type InventoryItem = { readonly id: string; readonly bytes: Base64 };

/** `before` is undefined for an item that was added, `after` for one that was removed. */
export type ItemChange = {
  readonly id: string;
  readonly before: Base64 | undefined;
  readonly after: Base64 | undefined;
};

export const emptyInventory: HostInventory = { buckets: {}, describing: null };

const emptyBucket: Bucket = {};

/** Ids end in hexadecimal digits of a hash or a random number, which gives about 256 buckets. */
function bucketOf(id: string): string {
  return id.slice(-2);
}

export function bytesOf({ buckets }: HostInventory, id: string): Base64 | undefined {
  const bucket = ownValue(buckets, bucketOf(id)) ?? emptyBucket;
  return ownValue(bucket, id);
}

/** All items, ordered by id. */
export function itemsOf({ buckets }: HostInventory): readonly InventoryItem[] {
  const all = Object.values(buckets).flatMap((bucket) => Object.entries(bucket));
  return all.map(([id, bytes]) => ({ id, bytes })).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Puts items, or removes those without bytes. Returns the same object where nothing changes. */
export function changed(
  inventory: HostInventory,
  changes: readonly { readonly id: string; readonly bytes?: Base64 }[],
): HostInventory {
  const real = [...new Map(changes.map(({ id, bytes }) => [id, bytes]))].filter(
    ([id, bytes]) => bytesOf(inventory, id) !== bytes,
  );
  if (real.length === 0) return inventory;
  let { buckets } = inventory;
  for (const [name, ofBucket] of Map.groupBy(real, ([id]) => bucketOf(id))) {
    const bucket = new Map(Object.entries(ownValue(buckets, name) ?? emptyBucket));
    for (const [id, bytes] of ofBucket) {
      if (bytes === undefined) bucket.delete(id);
      else bucket.set(id, bytes);
    }
    const { [name]: _, ...others } = buckets;
    buckets = bucket.size === 0 ? others : { ...buckets, [name]: Object.fromEntries(bucket) };
  }
  return { ...inventory, buckets };
}

/**
 * Applies one part of a description of the host. What it lists exists; with the last part, what no part listed is gone.
 * `listed` is undefined for a part that can't be decoded: then what is missing from it is unknown.
 */
export function described(
  inventory: HostInventory,
  detail: HostDetail,
  listed: readonly InventoryItem[] | undefined,
): HostInventory {
  const { part, parts } = detail;
  const before = listedBefore(inventory, detail);
  const settled = withoutDescription(inventory);
  if (listed === undefined) return settled;
  const known = changed(settled, listed);
  if (before === undefined || part >= parts) return known;
  const ids = [...before, ...listed.map(({ id }) => id)];
  if (part + 1 < parts) return { ...known, describing: { part: part + 1, parts, listed: ids } };
  const existing = new Set(ids);
  const removed = itemsOf(known).filter(({ id }) => !existing.has(id));
  return changed(
    known,
    removed.map(({ id }) => ({ id })),
  );
}

export function changesBetween(before: HostInventory, after: HostInventory): readonly ItemChange[] {
  if (before.buckets === after.buckets) return [];
  const changes: ItemChange[] = [];
  for (const [name, bucket] of Object.entries(after.buckets)) {
    const old = ownValue(before.buckets, name) ?? emptyBucket;
    if (old === bucket) continue;
    for (const [id, bytes] of Object.entries(bucket)) {
      const was = ownValue(old, id);
      if (was !== bytes) changes.push({ id, before: was, after: bytes });
    }
  }
  for (const [name, bucket] of Object.entries(before.buckets)) {
    const now = ownValue(after.buckets, name) ?? emptyBucket;
    if (now === bucket) continue;
    for (const [id, bytes] of Object.entries(bucket)) {
      if (!Object.hasOwn(now, id)) changes.push({ id, before: bytes, after: undefined });
    }
  }
  return changes;
}
