import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { Things, type Things_Kind } from "@tapedeck/proto/tapedeck/v1/look";
import type { Moment } from "@tapedeck/shared/time/moment";
import { bufferOf } from "../../../record/frames/original.ts";
import { inParts } from "../../in-parts.ts";
import type { ObservationOutcome } from "../../inventory/observing.ts";
import { pluralOf, type ResourceKind } from "./resource-kinds.ts";

/** An entry as masked, and how many secrets were masked in it. */
export type Accepted = { readonly bytes: Uint8Array; readonly redacted: number };

/** All that is known of one kind, in the upstream's order. */
export type KnownKind = { readonly kind: ResourceKind; readonly entries: ReadonlyMap<string, Accepted> };

/** The place of one entry in a description, or that a kind has none. */
type Line = { readonly kind: ResourceKind; readonly entry?: readonly [id: string, accepted: Accepted] };

const thingsType = "tapedeck.v1.Things";

/**
 * All things, in parts of at most 512 KiB (an entry larger than that is a part of its own). `lookedSince`: when the kind
 * that was looked at least lately was so, where that is before this.
 */
export function describeResources(
  kinds: readonly KnownKind[],
  lookedSince: Moment | undefined,
  observedAt: Moment,
): readonly Extract<ObservationOutcome, { what: "frame" }>[] {
  const lines = kinds.flatMap(({ kind, entries }): Line[] =>
    entries.size === 0 ? [{ kind }] : [...entries].map((entry) => ({ kind, entry })),
  );
  const parts = inParts(lines, ({ entry }) => (entry ? entry[0].length + entry[1].bytes.length : 0));
  const count = kinds.reduce((sum, { entries }) => sum + entries.size, 0);
  return parts.map((part, index) => ({
    what: "frame",
    original: {
      type: thingsType,
      bytes: Things.encode({ kinds: inKinds(part) }).finish(),
      redacted: part.reduce((sum, { entry }) => sum + (entry?.[1].redacted ?? 0), 0),
    },
    facts: [
      {
        kind: "host.described",
        summary: `the server has ${kinds.map(({ kind, entries }) => counted(kind, entries.size)).join(", ")}`,
        ...(lookedSince && { notBefore: lookedSince }),
        detail: {
          $case: "host",
          value: HostDetail.create({ part: index, parts: parts.length, entries: count }),
        },
      },
    ],
    observedAt,
  }));
}

/** A part of a description as it is read back. */
export type Description = { readonly part: number; readonly kinds: readonly Things_Kind[] };

/** Undefined for any other event. */
export function describedResources({ kind, detail, original }: Event): Description | undefined {
  if (kind !== "host.described" || detail?.$case !== "host" || original === undefined) return undefined;
  return { part: detail.value.part, kinds: Things.decode(original.bytes).kinds };
}

function inKinds(lines: readonly Line[]): Things_Kind[] {
  const kinds: Things_Kind[] = [];
  for (const { kind, entry } of lines) {
    if (kinds.at(-1)?.kind !== kind) kinds.push({ kind, same: false, entries: [], missing: [] });
    if (entry) kinds.at(-1)?.entries.push({ id: entry[0], bytes: bufferOf(entry[1].bytes) });
  }
  return kinds;
}

function counted(kind: ResourceKind, count: number): string {
  return `${count} ${count === 1 ? kind : pluralOf(kind)}`;
}
