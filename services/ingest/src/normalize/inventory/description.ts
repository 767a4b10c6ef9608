import { type Event, HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { inParts } from "../in-parts.ts";
import type { FrameOutcome } from "./inventory-rules.ts";

export type Description<Entry> = {
  readonly entries: readonly Entry[];
  /** How many entries the description announces. Default: all. */
  readonly count?: number;
  readonly bytesOf: (entry: Entry) => number;
  readonly summary: string;
  /** The message that one part's entries are recorded in. */
  readonly originalOf?: (entries: readonly Entry[]) => FrameOutcome["original"];
  /** A part's detail beside its number, or instead of a message. */
  readonly detailOf?: (entries: readonly Entry[], part: number) => Partial<HostDetail>;
  /** The oldest observation that the description relies on, where it is older than the last one. */
  readonly notBefore?: Timestamp | undefined;
};

/** All that is known of a channel, in parts of at most 512 KiB (an entry larger than that is a part of its own). */
export function describedInParts<Entry>(
  { entries, count = entries.length, bytesOf, summary, originalOf, detailOf, notBefore }: Description<Entry>,
  observedAt: Timestamp,
): readonly FrameOutcome[] {
  const parts = inParts(entries, bytesOf);
  return parts.map((held, part) => {
    const original = originalOf?.(held);
    const numbers = { part, parts: parts.length, entries: count };
    return {
      what: "frame",
      ...(original && { original }),
      facts: [
        {
          kind: "inventory.described",
          summary,
          ...(notBefore && { notBefore }),
          detail: { $case: "host", value: HostDetail.create({ ...numbers, ...detailOf?.(held, part) }) },
        },
      ],
      observedAt,
    };
  });
}

/** Which part of a description this event is; undefined for any other event. */
export function descriptionIn({ kind, detail }: Event): HostDetail | undefined {
  return kind === "inventory.described" && detail?.$case === "host" ? detail.value : undefined;
}
