import { ulid } from "ulid";
import { cloudEventsBatch } from "../../transports/http/cloud-events.ts";
import { cloudEventText, testCloudEventText } from "./cloud-event-text.ts";
import type { Format, FormattedSink, SinkEvent, SinkRequest } from "./format.ts";
import { signatureHeaders } from "./standard-signature.ts";

const structured = "application/cloudevents+json";

/**
 * CloudEvents over HTTP, in the structured mode or in batches, signed as Standard Webhooks. A request is known by the positions of its
 * events: an event's own id has dots, which Standard Webhooks puts between what it signs.
 */
export const webhook: Format = {
  open: (sink) => ({ requests: (events) => (sink.mode === "structured" ? single : batch)(events, sink) }),

  test(at, { workspace, name, mode }) {
    const id = `test_${ulid(at.getTime())}`;
    const one = testCloudEventText(id, at, workspace, name);
    const isBatch = mode === "batched";
    return {
      id,
      body: isBatch ? `[${one}]` : one,
      headers: { "content-type": `${isBatch ? cloudEventsBatch : structured}; charset=UTF-8` },
      covers: 0,
    };
  },

  headersOf: (sent, at, { secret }) => (secret === undefined ? {} : signatureHeaders(secret, sent, at)),
};

function single(events: readonly SinkEvent[], { epoch }: FormattedSink): readonly SinkRequest[] {
  return events.map((event, index) => ({
    id: event.position,
    body: cloudEventText(event, epoch),
    headers: { "content-type": `${structured}; charset=UTF-8` },
    covers: index + 1,
  }));
}

function batch(events: readonly SinkEvent[], { epoch }: FormattedSink): readonly SinkRequest[] {
  const [first, last] = [events[0], events.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    {
      id: first === last ? first.position : `${first.position}_${last.position}`,
      body: `[${events.map((event) => cloudEventText(event, epoch)).join(",")}]`,
      headers: { "content-type": `${cloudEventsBatch}; charset=UTF-8` },
      covers: events.length,
    },
  ];
}
