import { ulid } from "ulid";
import { cloudEventsBatch } from "../../transports/http/cloud-events.ts";
import { cloudEventText, testCloudEventText } from "./cloud-event-text.ts";
import type { Format, FormattedSink, SinkRequest } from "./format.ts";
import { signatureHeaders } from "./standard-signature.ts";

const structured = "application/cloudevents+json";

/** CloudEvents of one recorded event, written. */
export type CloudEventTexts = { readonly position: string; readonly texts: readonly string[] };

/**
 * CloudEvents over HTTP, in the structured mode or in batches, signed as Standard Webhooks. A request is known by the positions of its
 * events: an event's own id has dots, which Standard Webhooks puts between what it signs.
 */
export const webhook: Format = {
  open: (sink) => ({
    requests: (events) =>
      cloudEventRequests(
        events.map((event) => ({ position: event.position, texts: [cloudEventText(event, sink.epoch)] })),
        sink.mode,
      ),
  }),

  test(at, { workspace, name, mode }) {
    const id = `test_${ulid(at.getTime())}`;
    return cloudEventTest(id, testCloudEventText(id, at, workspace, name), mode);
  },

  headersOf: (sent, at, { secret }) => (secret === undefined ? {} : signatureHeaders(secret, sent, at)),
};

/** The requests of events, each of which may be several CloudEvents, or none. */
export function cloudEventRequests(
  events: readonly CloudEventTexts[],
  mode: FormattedSink["mode"],
): readonly SinkRequest[] {
  return mode === "structured" ? single(events) : batch(events);
}

export function cloudEventTest(id: string, text: string, mode: FormattedSink["mode"]): SinkRequest {
  const isBatch = mode === "batched";
  return {
    id,
    body: isBatch ? `[${text}]` : text,
    headers: { "content-type": `${isBatch ? cloudEventsBatch : structured}; charset=UTF-8` },
    covers: 0,
  };
}

/** An event is delivered with the last of its CloudEvents. */
function single(events: readonly CloudEventTexts[]): readonly SinkRequest[] {
  return events.flatMap(({ position, texts }, index) =>
    texts.map((body, part) => ({
      id: part === 0 ? position : `${position}_${part}`,
      body,
      headers: { "content-type": `${structured}; charset=UTF-8` },
      covers: part === texts.length - 1 ? index + 1 : index,
    })),
  );
}

function batch(events: readonly CloudEventTexts[]): readonly SinkRequest[] {
  const sent = events.filter(({ texts }) => texts.length > 0);
  const [first, last] = [sent[0], sent.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [
    {
      id: first === last ? first.position : `${first.position}_${last.position}`,
      body: `[${sent.flatMap(({ texts }) => texts).join(",")}]`,
      headers: { "content-type": `${cloudEventsBatch}; charset=UTF-8` },
      covers: events.length,
    },
  ];
}
