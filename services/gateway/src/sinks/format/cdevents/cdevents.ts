import { dateToJson, timeToJson } from "@tapedeck/shared/events/time-text";
import { ulid } from "ulid";
import { sequenceDigits } from "../../../transports/http/cloud-events.ts";
import type { Format, FormattedSink, SinkEvent } from "../format.ts";
import { type Labels, SessionReader } from "../otlp/session-facts.ts";
import { type CloudEventTexts, cloudEventRequests, cloudEventTest, webhook } from "../webhook.ts";
import { cdFacts, mappedKinds } from "./cd-facts.ts";
import { type CdEvent, specVersion, toCdEvent } from "./cdevent.ts";

/** CDEvents in CloudEvents, as the binding of the specification has them. Events without a counterpart are not sent. */
export const cdEvents: Format = {
  ...webhook,
  kinds: () => mappedKinds,

  open(sink, reader) {
    const sessions = new SessionReader(reader, sink.workspace, false);
    return {
      async requests(events, signal) {
        const texts: CloudEventTexts[] = [];
        for (const event of events) {
          const isBuilt = event.recorded.event.kind === "build.succeeded";
          const commit = isBuilt ? commitIn((await sessions.at(event.recorded, undefined, signal)).labels) : undefined;
          texts.push({ position: event.position, texts: textsOf(event, commit, sink) });
        }
        return cloudEventRequests(texts, sink.mode);
      },
    };
  },

  /** A custom event, as the specification calls those of tools. */
  test(at, { workspace, name, mode }) {
    const id = `test_${ulid(at.getTime())}`;
    const context = {
      specversion: specVersion,
      id,
      source: `/sinks/${encodeURI(workspace)}/${name}`,
      type: "dev.cdeventsx.tapedeck-sink.tested.0.1.0",
      timestamp: at.toISOString(),
    };
    return cloudEventTest(id, cloudEvent({ context, subject: { id: name, content: {} } }, {}), mode);
  },
};

/** With "-dirty" for one with changes; undefined: unknown. */
function commitIn({ commit, dirty }: Labels): string | undefined {
  return commit !== undefined && dirty === "true" ? `${commit}-dirty` : commit;
}

function textsOf({ recorded, position }: SinkEvent, commit: string | undefined, { page }: FormattedSink) {
  const { event, recordedAt, offset } = recorded;
  const at = event.occurred_at ?? event.observed_at;
  const timestamp = at === undefined ? dateToJson(recordedAt) : timeToJson(at);
  const extensions = {
    sequence: String(offset).padStart(sequenceDigits, "0"),
    tapedeckposition: position,
    recordedtime: dateToJson(recordedAt),
  };
  return cdFacts(event, { page, position, commit }).map((fact) =>
    cloudEvent(toCdEvent(fact, event, timestamp), extensions),
  );
}

function cloudEvent(data: CdEvent, extensions: Readonly<Record<string, string>>): string {
  const { id, source, type, timestamp } = data.context;
  return JSON.stringify({
    specversion: "1.0",
    id,
    source,
    type,
    subject: data.subject.id,
    time: timestamp,
    datacontenttype: "application/json",
    ...extensions,
    data,
  });
}
