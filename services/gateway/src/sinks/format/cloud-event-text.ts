import { writeEventJson } from "@tapedeck/shared/events/json";
import { dateToJson, timeToJson } from "@tapedeck/shared/events/time-text";
import { sequenceDigits } from "../../transports/http/cloud-events.ts";
import type { SinkEvent } from "./format.ts";

/** The JSON of `toCloudEvent`, written without an object in between: a busy sink consists of these. */
export function cloudEventText({ recorded, position }: SinkEvent, epoch: string): string {
  const { event, recordedAt } = recorded;
  const recordedText = dateToJson(recordedAt);
  const at = event.occurred_at ?? event.observed_at;
  const time = at === undefined ? recordedText : timeToJson(at);
  const subject = event.subject === "" ? "" : `,"subject":${JSON.stringify(event.subject)}`;
  const sequence = String(recorded.offset).padStart(sequenceDigits, "0");
  return (
    `{"specversion":"1.0","id":${JSON.stringify(event.id)},"source":${JSON.stringify(`/sources/${encodeURI(event.source)}`)}` +
    `,"type":"dev.tapedeck.${event.kind}"${subject},"time":"${time}","datacontenttype":"application/json"` +
    `,"sequence":"${sequence}","tapedeckposition":"${position}","recordedtime":"${recordedText}"` +
    `,"data":${writeEventJson(recorded, epoch)}}`
  );
}

/** What a test sends: it is about no source. */
export function testCloudEventText(id: string, at: Date, workspace: string, sink: string): string {
  return JSON.stringify({
    specversion: "1.0",
    id,
    source: `/sinks/${encodeURI(workspace)}/${sink}`,
    type: testType,
    time: at.toISOString(),
    datacontenttype: "application/json",
    data: { workspace, sink },
  });
}

export const testType = "dev.tapedeck.sink.test";
