import { type Event, HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { listOf } from "@tapedeck/shared/rkt/entries";
import type { Moment } from "@tapedeck/shared/time/moment";
import { inParts } from "../in-parts.ts";
import type { ObservationOutcome } from "../inventory/observing.ts";

/** It was told to be gone since the last description; or its end was told, and then it was seen again. */
export type Mark = "gone" | "returned";

/** An entry as accepted, and how many secrets were masked in it. */
export type Accepted = { readonly bytes: Uint8Array; readonly redacted: number };

type Frame = Extract<ObservationOutcome, { what: "frame" }>;

/** All that is known of a channel, in parts of at most 512 KiB (an entry larger than that is a part of its own). */
export function describing(
  noun: string,
  listType: string,
  entries: readonly Accepted[],
  marks: Readonly<Record<Mark, string[]>>,
  observedAt: Moment,
): readonly Frame[] {
  const parts = inParts(entries, ({ bytes }) => bytes.length);
  return parts.map((part, index) => ({
    what: "frame",
    original: {
      type: listType,
      bytes: listOf(part.map(({ bytes }) => bytes)),
      redacted: part.reduce((sum, { redacted }) => sum + redacted, 0),
    },
    facts: [
      {
        kind: "host.described",
        summary: `the host has ${entries.length} ${noun}${entries.length === 1 ? "" : "s"}`,
        detail: {
          $case: "host",
          value: HostDetail.create({
            ...{ part: index, parts: parts.length, entries: entries.length },
            ...(index === 0 && marks),
          }),
        },
      },
    ],
    observedAt,
  }));
}

/** Which part of a description this event is; undefined for any other event. */
export function descriptionIn({ kind, detail }: Event): HostDetail | undefined {
  return kind === "host.described" && detail?.$case === "host" ? detail.value : undefined;
}
