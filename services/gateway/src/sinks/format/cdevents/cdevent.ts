import type { Event } from "@tapedeck/proto/tapedeck/v1/event";

/** The version of the specification, and the versions of the types of events in it. */
export const specVersion = "0.5.1";
const typeVersions = {
  "pipelinerun.queued": "0.3.0",
  "pipelinerun.started": "0.3.0",
  "pipelinerun.finished": "0.3.0",
  "taskrun.started": "0.3.0",
  "taskrun.finished": "0.3.0",
  "build.started": "0.3.0",
  "build.finished": "0.3.0",
  "artifact.packaged": "0.3.0",
  "artifact.downloaded": "0.2.0",
  "service.deployed": "0.3.0",
  "service.published": "0.3.0",
  "service.removed": "0.3.0",
} as const;

export type CdType = keyof typeof typeVersions;

/** What a recorded event is in the vocabulary of CDEvents. */
export type CdFact = {
  readonly type: CdType;
  /** Identifies what it is about within the source. */
  readonly id: string;
  readonly content: Readonly<Record<string, unknown>>;
};

export type CdEvent = {
  readonly context: {
    readonly specversion: string;
    readonly id: string;
    readonly source: string;
    readonly type: string;
    readonly timestamp: string;
  };
  readonly subject: { readonly id: string; readonly content: Readonly<Record<string, unknown>> };
};

/** One recorded event may be several CDEvents, of different subjects: their ids differ by the subject, and are the same each time. */
export function toCdEvent({ type, id, content }: CdFact, { id: eventId, source }: Event, timestamp: string): CdEvent {
  const [subject] = type.split(".");
  return {
    context: {
      specversion: specVersion,
      id: `${eventId}/${subject}`,
      source: sourceUri(source),
      type: `dev.cdevents.${type}.${typeVersions[type]}`,
      timestamp,
    },
    subject: { id, content },
  };
}

/** The same as in CloudEvents of Tapedeck. */
export function sourceUri(source: string): string {
  return `/sources/${encodeURI(source)}`;
}
