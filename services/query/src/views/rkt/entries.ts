import type { HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Base64 } from "../states/base64.ts";

/**
 * What is on a host, by its id. In buckets, because a host has thousands of pods and an event changes one: it copies
 * the bucket, not all of them.
 */
export type Entries = {
  readonly buckets: Readonly<Record<string, Bucket>>;
  /** A description of which parts are still to come; null: none. */
  readonly describing: Describing | null;
};

type Bucket = Readonly<Record<string, Base64>>;

type Describing = {
  /** The next one. */
  readonly part: number;
  readonly parts: number;
  /** Ids that it has listed so far. */
  readonly listed: readonly string[];
};

export type Entry = { readonly id: string; readonly bytes: Base64 };

/** Undefined as `before`: it came; as `after`: it went. */
export type EntryChange = {
  readonly id: string;
  readonly before: Base64 | undefined;
  readonly after: Base64 | undefined;
};

export const noEntries: Entries = { buckets: {}, describing: null };

const none: Bucket = {};

/** Ids end in hexadecimal digits of a hash or a random number: some 256 buckets. */
function bucketOf(id: string): string {
  return id.slice(-2);
}

export function entry({ buckets }: Entries, id: string): Base64 | undefined {
  const bucket = buckets[bucketOf(id)] ?? none;
  return Object.hasOwn(bucket, id) ? bucket[id] : undefined;
}

/** All of them, ordered by their ids. */
export function entriesOf({ buckets }: Entries): readonly Entry[] {
  const all = Object.values(buckets).flatMap((bucket) => Object.entries(bucket));
  return all.map(([id, bytes]) => ({ id, bytes })).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Entries put in place, or taken away (without bytes); the same object back where nothing changes. */
export function changed(
  entries: Entries,
  changes: readonly { readonly id: string; readonly bytes?: Base64 }[],
): Entries {
  const real = [...new Map(changes.map(({ id, bytes }) => [id, bytes]))].filter(
    ([id, bytes]) => entry(entries, id) !== bytes,
  );
  if (real.length === 0) return entries;
  let { buckets } = entries;
  for (const [name, ofBucket] of Map.groupBy(real, ([id]) => bucketOf(id))) {
    const { [name]: old = none, ...others } = buckets;
    const bucket = new Map(Object.entries(old));
    for (const [id, bytes] of ofBucket) {
      if (bytes === undefined) bucket.delete(id);
      else bucket.set(id, bytes);
    }
    buckets = bucket.size === 0 ? others : { ...buckets, [name]: Object.fromEntries(bucket) };
  }
  return { ...entries, buckets };
}

/** Any other event of the channel breaks a description off: its parts follow each other. */
export function undescribed(entries: Entries): Entries {
  return entries.describing === null ? entries : { ...entries, describing: null };
}

/**
 * One part of a description of the host: what it lists is there, and with the last part what none of them listed is
 * not. `listed` undefined: the part can't be read, so that nothing follows from what is missing in it.
 */
export function described(
  entries: Entries,
  { part, parts }: HostDetail,
  listed: readonly Entry[] | undefined,
): Entries {
  const before = part === 0 ? [] : listedBefore(entries.describing, part, parts);
  const settled = undescribed(entries);
  if (listed === undefined) return settled;
  const known = changed(settled, listed);
  if (before === undefined || part >= parts) return known;
  const ids = [...before, ...listed.map(({ id }) => id)];
  if (part + 1 < parts) return { ...known, describing: { part: part + 1, parts, listed: ids } };
  const there = new Set(ids);
  const gone = entriesOf(known).filter(({ id }) => !there.has(id));
  return changed(
    known,
    gone.map(({ id }) => ({ id })),
  );
}

function listedBefore(describing: Describing | null, part: number, parts: number): readonly string[] | undefined {
  return describing?.part === part && describing.parts === parts ? describing.listed : undefined;
}

export function changesBetween(before: Entries, after: Entries): readonly EntryChange[] {
  if (before.buckets === after.buckets) return [];
  const changes: EntryChange[] = [];
  for (const [name, bucket] of Object.entries(after.buckets)) {
    const old = before.buckets[name] ?? none;
    if (old === bucket) continue;
    for (const [id, bytes] of Object.entries(bucket)) {
      const was = Object.hasOwn(old, id) ? old[id] : undefined;
      if (was !== bytes) changes.push({ id, before: was, after: bytes });
    }
  }
  for (const [name, bucket] of Object.entries(before.buckets)) {
    const now = after.buckets[name] ?? none;
    if (now === bucket) continue;
    for (const [id, bytes] of Object.entries(bucket)) {
      if (!Object.hasOwn(now, id)) changes.push({ id, before: bytes, after: undefined });
    }
  }
  return changes;
}
