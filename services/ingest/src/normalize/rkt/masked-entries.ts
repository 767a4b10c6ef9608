import type { Look } from "@tapedeck/proto/tapedeck/v1/look";
import { imageEntries, podEntries } from "@tapedeck/shared/rkt/entries";
import { linesOf } from "@tapedeck/tap/rkt/text-lines";
import type { ObservedEntry } from "../inventory/observing.ts";

/** Pods, images and lines of a look, as the watchers have them masked. */
export function entriesOf(channel: string, { seen }: Look): readonly ObservedEntry[] {
  switch (seen?.$case) {
    case "all":
      return listed(channel, seen.value);
    case "one":
      return listed(channel, seen.value.bytes);
    case "text":
      return (linesOf(seen.value.bytes) ?? [seen.value.bytes]).map((bytes) => ({
        type: "v1alpha.GetLogsResponse",
        bytes,
      }));
    default:
      return [];
  }
}

function listed(channel: string, answer: Uint8Array): readonly ObservedEntry[] {
  const type = channel === "images" ? "v1alpha.Image" : "v1alpha.Pod";
  const entries = channel === "images" ? imageEntries(answer) : podEntries(answer);
  return (entries ?? []).map(({ bytes }) => ({ type, bytes }));
}
