import type { EventJson } from "@tapedeck/shared/events/json";
import { parsePosition } from "@tapedeck/shared/log/position";
import type { AnswerOf } from "../../apis/tapedeck/answers.ts";

export type CloudEvent = Omit<AnswerOf<"CloudEvent">, "data"> & { readonly data: EventJson };

export const cloudEventsBatch = "application/cloudevents-batch+json";

/** The longest sequence in a position, so that texts sort as the numbers do. */
export const sequenceDigits = 16;

/** An event in the JSON format of CloudEvents 1.0.2. Unknown values are omitted, never null. */
export function toCloudEvent(data: EventJson): CloudEvent {
  const { position, recordedAt, subject } = data;
  return {
    specversion: "1.0",
    id: data.id,
    source: `/sources/${encodeURI(data.source)}`,
    type: `dev.tapedeck.${data.kind}`,
    ...(subject !== undefined && { subject }),
    time: data.occurredAt ?? data.observedAt ?? recordedAt,
    datacontenttype: "application/json",
    sequence: String(parsePosition(position)?.offset ?? 0).padStart(sequenceDigits, "0"),
    tapedeckposition: position,
    recordedtime: recordedAt,
    data,
  };
}

/** The Link header of a page that has a next page: the same request, from there on. */
export function nextLink(url: string, after: string): string {
  const [path, query] = url.split("?");
  const next = new URLSearchParams(query);
  next.set("after", after);
  return `<${path}?${next}>; rel="next"`;
}
