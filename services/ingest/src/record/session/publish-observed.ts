import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import { observedSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";

/** Publishes what an upstream answered about its state. Never throws and never waits, because recording comes first. */
export function observedPublisher(nats: Pick<NatsConnection, "publish">): (observed: Observed) => void {
  return (observed) => {
    try {
      nats.publish(observedSubject(observed.source as SourceName), Observed.encode(observed).finish());
    } catch {
      // The connection is closed, or the state exceeds the message limit. The state is not compared then.
    }
  };
}
