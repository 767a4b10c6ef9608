import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { imageEntries, podEntries } from "@tapedeck/shared/rkt/entries";
import { linesOf } from "@tapedeck/tap/rkt/text-lines";
import type { ObservedEntry } from "../inventory/observing.ts";

/** Pods, images and lines of an observation, in the form that the watchers mask. */
export function entriesOf(channel: string, { result }: Observation): readonly ObservedEntry[] {
  switch (result?.$case) {
    case "all":
      return listed(channel, result.value);
    case "one":
      return listed(channel, result.value.bytes);
    case "text":
      return (linesOf(result.value.bytes) ?? [result.value.bytes]).map((bytes) => ({
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
