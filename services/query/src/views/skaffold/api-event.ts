import type { Event as V1Message } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { Event as V2Message } from "@tapedeck/proto/skaffold/v2/skaffold";

export type V1Event = NonNullable<V1Message["event_type"]>;
export type V2Event = NonNullable<V2Message["event_type"]>;
