import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import { observedSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";

/** Tells whoever listens what an upstream answered about itself. Never throws, never waits: recording comes first. */
export function observedTeller(nats: Pick<NatsConnection, "publish">): (observed: Observed) => void {
  return (observed) => {
    try {
      nats.publish(observedSubject(observed.source as SourceName), Observed.encode(observed).finish());
    } catch {
      // The connection is closed, or the state larger than a message may be: then it is not compared.
    }
  };
}
