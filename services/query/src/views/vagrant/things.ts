import type { HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Base64 } from "../states/base64.ts";

export const thingKinds = ["target", "project", "basis", "box", "runner"] as const;

export type ThingKind = (typeof thingKinds)[number];

/** Its resource_id, or a runner's id, and its message as the upstream answered it. */
export type Thing = { readonly kind: ThingKind; readonly id: string; readonly bytes: Base64 };

/** In the order of the upstream's lists: as described last, then as added. A server has some tens or hundreds. */
export type Things = {
  readonly all: readonly Thing[];
  /** A description of which parts are still to come; null: none. */
  readonly describing: Describing | null;
};

type Describing = {
  /** The next one. */
  readonly part: number;
  readonly parts: number;
  /** Keys of the things that it has listed so far. */
  readonly listed: readonly string[];
};

/** Without bytes: it is there, but can't be read, so what was known of it stays. */
export type Listed = Omit<Thing, "bytes"> & { readonly bytes?: Base64 };

/** Undefined as `before`: it came; as `after`: it went. */
export type ThingChange = { readonly before: Thing | undefined; readonly after: Thing | undefined };

export const noThings: Things = { all: [], describing: null };

export function isThingKind(text: string): text is ThingKind {
  return thingKinds.some((kind) => kind === text);
}

/** Those that are known keep their place, new ones come behind; the same object back where nothing changes. */
export function put(things: Things, news: readonly Listed[]): Things {
  const all = byKey(things.all);
  let changes = false;
  for (const { kind, id, bytes } of news) {
    const key = keyOf({ kind, id });
    if (bytes === undefined || all.get(key)?.bytes === bytes) continue;
    all.set(key, { kind, id, bytes });
    changes = true;
  }
  return changes ? { ...things, all: [...all.values()] } : things;
}

export function without(things: Things, gone: Pick<Thing, "kind" | "id">): Things {
  const all = things.all.filter(({ kind, id }) => kind !== gone.kind || id !== gone.id);
  return all.length === things.all.length ? things : { ...things, all };
}

/** Any other event of the channel breaks a description off: its parts follow each other. */
export function undescribed(things: Things): Things {
  return things.describing === null ? things : { ...things, describing: null };
}

/**
 * One part of a description: what it lists is there, and with the last part what none of them listed is not, and the
 * order is theirs. `listed` undefined: the part can't be read, so that nothing follows from what is missing in it.
 */
export function described(things: Things, { part, parts }: HostDetail, listed: readonly Listed[] | undefined): Things {
  const before = part === 0 ? [] : listedBefore(things.describing, part, parts);
  const settled = undescribed(things);
  if (listed === undefined) return settled;
  const known = put(settled, listed);
  if (before === undefined || part >= parts) return known;
  const keys = [...before, ...listed.map(keyOf)];
  if (part + 1 < parts) return { ...known, describing: { part: part + 1, parts, listed: keys } };
  const there = byKey(known.all);
  const all = [...new Set(keys)].flatMap((key) => there.get(key) ?? []);
  const isSame = all.length === known.all.length && all.every((thing, index) => thing === known.all[index]);
  return isSame ? known : { ...known, all };
}

function listedBefore(describing: Describing | null, part: number, parts: number): readonly string[] | undefined {
  return describing?.part === part && describing.parts === parts ? describing.listed : undefined;
}

/** Of one kind; another order alone is no change. */
export function changesBetween(kind: ThingKind, before: Things, after: Things): readonly ThingChange[] {
  if (before.all === after.all) return [];
  const was = byKey(before.all.filter((thing) => thing.kind === kind));
  const now = byKey(after.all.filter((thing) => thing.kind === kind));
  const put = [...now].map(([key, thing]) => ({ before: was.get(key), after: thing }));
  const gone = [...was].filter(([key]) => !now.has(key)).map(([, thing]) => ({ before: thing, after: undefined }));
  return [...put.filter((change) => change.before !== change.after), ...gone];
}

function byKey(things: readonly Thing[]): Map<string, Thing> {
  return new Map(things.map((thing) => [keyOf(thing), thing]));
}

function keyOf({ kind, id }: Pick<Thing, "kind" | "id">): string {
  return `${kind}/${id}`;
}
