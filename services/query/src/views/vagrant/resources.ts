import type { HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Base64 } from "../states/base64.ts";
import { listedBefore, type PartialDescription, withoutDescription } from "../states/description.ts";

export const resourceKinds = ["target", "project", "basis", "box", "runner"] as const;

export type ResourceKind = (typeof resourceKinds)[number];

/** `id`: the resource_id, or the id of a runner. `bytes`: its message as the upstream answered it. */
export type FoldedResource = { readonly kind: ResourceKind; readonly id: string; readonly bytes: Base64 };

/** In the order of the upstream's lists: as last described, then as added. A server has tens or hundreds of them. */
export type Resources = {
  readonly all: readonly FoldedResource[];
  readonly describing: PartialDescription | null;
};

/** Without bytes: the resource exists but can't be decoded, so what was known of it stays. */
export type ListedResource = Omit<FoldedResource, "bytes"> & { readonly bytes?: Base64 };

/** `before` is undefined for a resource that was added, `after` for one that was removed. */
export type ResourceChange = {
  readonly before: FoldedResource | undefined;
  readonly after: FoldedResource | undefined;
};

export const noResources: Resources = { all: [], describing: null };

export function isResourceKind(text: string): text is ResourceKind {
  return resourceKinds.some((kind) => kind === text);
}

/** Known resources keep their position, new ones follow them. Returns the same object where nothing changes. */
export function put(resources: Resources, listed: readonly ListedResource[]): Resources {
  const all = byKey(resources.all);
  let changes = false;
  for (const { kind, id, bytes } of listed) {
    const key = keyOf({ kind, id });
    if (bytes === undefined || all.get(key)?.bytes === bytes) continue;
    all.set(key, { kind, id, bytes });
    changes = true;
  }
  return changes ? { ...resources, all: [...all.values()] } : resources;
}

export function without(resources: Resources, removed: Pick<FoldedResource, "kind" | "id">): Resources {
  const all = resources.all.filter(({ kind, id }) => kind !== removed.kind || id !== removed.id);
  return all.length === resources.all.length ? resources : { ...resources, all };
}

/**
 * Applies one part of a description. What it lists exists; with the last part, what no part listed is gone and the order
 * is theirs. `listed` is undefined for a part that can't be decoded: then what is missing from it is unknown.
 */
export function described(
  resources: Resources,
  detail: HostDetail,
  listed: readonly ListedResource[] | undefined,
): Resources {
  const { part, parts } = detail;
  const before = listedBefore(resources, detail);
  const settled = withoutDescription(resources);
  if (listed === undefined) return settled;
  const known = put(settled, listed);
  if (before === undefined || part >= parts) return known;
  const keys = [...before, ...listed.map(keyOf)];
  if (part + 1 < parts) return { ...known, describing: { part: part + 1, parts, listed: keys } };
  const existing = byKey(known.all);
  const all = [...new Set(keys)].flatMap((key) => existing.get(key) ?? []);
  const isSame = all.length === known.all.length && all.every((resource, index) => resource === known.all[index]);
  return isSame ? known : { ...known, all };
}

/** The changes of one kind. Another order alone is no change. */
export function changesBetween(kind: ResourceKind, before: Resources, after: Resources): readonly ResourceChange[] {
  if (before.all === after.all) return [];
  const was = byKey(before.all.filter((resource) => resource.kind === kind));
  const now = byKey(after.all.filter((resource) => resource.kind === kind));
  const written = [...now].map(([key, resource]) => ({ before: was.get(key), after: resource }));
  const removed = [...was]
    .filter(([key]) => !now.has(key))
    .map(([, resource]) => ({ before: resource, after: undefined }));
  return [...written.filter((change) => change.before !== change.after), ...removed];
}

function byKey(resources: readonly FoldedResource[]): Map<string, FoldedResource> {
  return new Map(resources.map((resource) => [keyOf(resource), resource]));
}

function keyOf({ kind, id }: Pick<FoldedResource, "kind" | "id">): string {
  return `${kind}/${id}`;
}
