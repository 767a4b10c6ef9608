import type { ApplicationLogEvent } from "@tapedeck/proto/skaffold/v2/skaffold";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { validTimestamp } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../fact.ts";
import { firstLine, name, summary, text, unreadable } from "../facts.ts";
import { laterType, mirror } from "./facts.ts";
import type { ChannelReader } from "./frame-reader.ts";

/** The output of containers. The channel has no runners and loops, so there is nothing to remember. */
export const logs: ChannelReader<undefined> = {
  start: undefined,
  read: (memory, bytes) => ({ memory, fact: read(bytes) }),
  resume: () => undefined,
};

function read(bytes: Uint8Array): Fact {
  try {
    const event = V2Event.decode(bytes);
    const eventType = event.event_type;
    const fact =
      eventType?.$case === "applicationLogEvent" ? line(eventType.value) : mirror(eventType?.$case ?? laterType(event));
    const occurredAt = validTimestamp(event.timestamp);
    return { ...fact, ...(occurredAt && { occurredAt }) };
  } catch (cause) {
    return unreadable(bytes, cause);
  }
}

function line({ containerName, podName, message }: ApplicationLogEvent): Fact {
  const container = name(containerName);
  return {
    kind: "log.written",
    subject: container,
    summary: summary(firstLine(message)),
    detail: {
      $case: "text",
      value: {
        text: text(message),
        level: "",
        task: "",
        subtask: "",
        pod: name(podName),
        container,
        noise: message === "",
      },
    },
  };
}
