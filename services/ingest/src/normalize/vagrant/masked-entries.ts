import type { Look } from "@tapedeck/proto/tapedeck/v1/look";
import type { ObservedEntry } from "../inventory/observing.ts";
import { jobsIn, streamMessageIn } from "./jobs/job-wire.ts";
import { eventType } from "./jobs/output-pieces.ts";
import { isResourceKind, messageTypeOf } from "./resources/resource-kinds.ts";

const jobType = "hashicorp.vagrant.Job";
const streamType = "hashicorp.vagrant.GetJobStreamResponse";

/** Jobs, things and events of a look, as the watchers have them masked. Throws for looks that can't be read. */
export function entriesOf(_channel: string, { seen }: Look): readonly ObservedEntry[] {
  switch (seen?.$case) {
    case "all":
      return jobsIn(seen.value).map(({ bytes }) => ({ type: jobType, bytes }));
    case "one":
      return [{ type: jobType, bytes: seen.value.bytes }];
    case "streamed":
      return streamed(seen.value.bytes);
    case "things":
      return seen.value.kinds.flatMap(({ kind, entries }) =>
        isResourceKind(kind) ? entries.map(({ bytes }) => ({ type: messageTypeOf(kind), bytes })) : [],
      );
    default:
      return [];
  }
}

function streamed(response: Uint8Array): readonly ObservedEntry[] {
  const message = streamMessageIn(response);
  if (message.what === "terminal") return message.events.map((bytes) => ({ type: eventType, bytes }));
  if (message.what === "state") return message.job === undefined ? [] : [{ type: jobType, bytes: message.job }];
  return [{ type: streamType, bytes: response }];
}
