import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Resources, type Resources_Kind } from "@tapedeck/proto/tapedeck/v1/observation";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { describedInParts, descriptionIn } from "../../inventory/description.ts";
import type { FrameOutcome } from "../../inventory/inventory-rules.ts";
import { pluralOf, type ResourceKind } from "./resource-kinds.ts";

/** An entry, masked, and how many secrets were masked in it. */
export type AcceptedResource = { readonly bytes: Uint8Array; readonly redacted: number };

/** All that is known of one kind, in the upstream's order. */
export type KnownKind = { readonly kind: ResourceKind; readonly entries: ReadonlyMap<string, AcceptedResource> };

/** One entry of a description, or that a kind has none. */
type ResourceRow = { readonly kind: ResourceKind; readonly entry?: readonly [id: string, accepted: AcceptedResource] };

const resourcesType = "tapedeck.v1.Resources";

/** All resources. `observedSince`: when the kind that was observed longest ago was so, where that is before this. */
export function describeResources(
  kinds: readonly KnownKind[],
  observedSince: Timestamp | undefined,
  observedAt: Timestamp,
): readonly FrameOutcome[] {
  const rows = kinds.flatMap(({ kind, entries }): ResourceRow[] =>
    entries.size === 0 ? [{ kind }] : [...entries].map((entry) => ({ kind, entry })),
  );
  return describedInParts(
    {
      entries: rows,
      count: kinds.reduce((sum, { entries }) => sum + entries.size, 0),
      bytesOf: ({ entry }) => (entry ? entry[0].length + entry[1].bytes.length : 0),
      summary: `the server has ${kinds.map(({ kind, entries }) => counted(kind, entries.size)).join(", ")}`,
      originalOf: (part) => ({
        type: resourcesType,
        bytes: Resources.encode({ kinds: inKinds(part) }).finish(),
        redacted: part.reduce((sum, { entry }) => sum + (entry?.[1].redacted ?? 0), 0),
      }),
      notBefore: observedSince,
    },
    observedAt,
  );
}

/** A part of a description as it is read back. */
export type ResourceDescription = { readonly part: number; readonly kinds: readonly Resources_Kind[] };

/** Undefined for any other event. */
export function describedResources(event: Event): ResourceDescription | undefined {
  const detail = descriptionIn(event);
  if (detail === undefined || event.original === undefined) return undefined;
  return { part: detail.part, kinds: Resources.decode(event.original.bytes).kinds };
}

function inKinds(rows: readonly ResourceRow[]): Resources_Kind[] {
  const kinds: Resources_Kind[] = [];
  for (const { kind, entry } of rows) {
    if (kinds.at(-1)?.kind !== kind) kinds.push({ kind, same: false, entries: [], missing: [] });
    if (entry) kinds.at(-1)?.entries.push({ id: entry[0], bytes: asBuffer(entry[1].bytes) });
  }
  return kinds;
}

function counted(kind: ResourceKind, count: number): string {
  return `${count} ${count === 1 ? kind : pluralOf(kind)}`;
}
