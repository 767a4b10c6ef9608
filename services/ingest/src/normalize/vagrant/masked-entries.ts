import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { ObservedEntry } from "../inventory/observing.ts";
import { jobsIn, streamMessageIn } from "./jobs/job-wire.ts";
import { eventType } from "./jobs/output-pieces.ts";
import { isResourceKind, messageTypeOf } from "./resources/resource-kinds.ts";

const jobType = "hashicorp.vagrant.Job";
const streamType = "hashicorp.vagrant.GetJobStreamResponse";

/** Jobs, resources and events of an observation, in the form that the watchers mask. Throws for one that can't be read. */
export function entriesOf(_channel: string, { result }: Observation): readonly ObservedEntry[] {
  switch (result?.$case) {
    case "all":
      return jobsIn(result.value).map(({ bytes }) => ({ type: jobType, bytes }));
    case "one":
      return [{ type: jobType, bytes: result.value.bytes }];
    case "streamed":
      return streamed(result.value.bytes);
    case "resources":
      return result.value.kinds.flatMap(({ kind, entries }) =>
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
