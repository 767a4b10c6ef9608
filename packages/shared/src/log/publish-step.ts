import { StreamMessage } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { NatsConnection } from "nats";
import { streamSubject } from "./subjects.ts";

/** A step does not fit into a message of NATS. Its stream ends with RESOURCE_EXHAUSTED and this text, on both sides. */
export class StepTooLargeError extends Error {}

/**
 * Sends a step of a stream between a client and an upstream.
 * @throws StepTooLargeError
 */
export function publishStep(nats: NatsConnection, to: "upstream" | "client", message: StreamMessage): void {
  const bytes = StreamMessage.encode(message).finish();
  const maxBytes = nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
  if (bytes.length > maxBytes) {
    const text = `a message of ${bytes.length} bytes on a stream: the nats-server takes ${maxBytes} (max_payload)`;
    throw new StepTooLargeError(text);
  }
  nats.publish(streamSubject(to, message.stream), bytes);
}
