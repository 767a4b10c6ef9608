import { kindNoun } from "../events/kinds.ts";
import { type SourceName, sourceParts } from "../source.ts";

export const streamName = "TAPEDECK";

const root = "tapedeck.v1";
const observedRoot = "tapedeck.observed";

/** Subject of one event: tapedeck.v1.<workspace>.<developer>.<project>.<upstream>.<channel>.<kind noun>. */
export function eventSubject(source: SourceName, channel: string, kind: string): string {
  return `${sourceSubject(source)}.${channel}.${kindNoun(kind)}`;
}

/** Everything of a source: the filter of the writer's expectation. */
export function sourceFilter(source: SourceName): string {
  return `${sourceSubject(source)}.>`;
}

/** All events of one channel of a source. */
export function channelFilter(source: SourceName, channel: string): string {
  return `${sourceSubject(source)}.${channel}.*`;
}

/** Tapedeck's own events about the sessions and upstreams of all sources. */
export const lifecycleSubjects = ["session", "upstream"].map((noun) => `${root}.*.*.*.*.tapedeck.${noun}`);

/** Everything of a workspace. */
export function workspaceFilter(workspace: string): string {
  return `${root}.${workspace}.>`;
}

export const everySubject = `${root}.>`;

/** Where control calls for a source are requested (core NATS request, not in the stream). */
export function controlSubject(source: SourceName): string {
  const { workspace, developer, project, upstream } = sourceParts(source);
  return `tapedeck.control.${workspace}.${developer}.${project}.${upstream}`;
}

/** Where record publishes what a source's upstream answered about itself (core NATS message, not in the stream). */
export function observedSubject(source: SourceName): string {
  const { workspace, developer, project, upstream } = sourceParts(source);
  return `${observedRoot}.${workspace}.${developer}.${project}.${upstream}`;
}

/** Where query asks record to adopt what a source's upstream answered about itself (core NATS message, not in the stream). */
export function adoptSubject(source: SourceName): string {
  const { workspace, developer, project, upstream } = sourceParts(source);
  return `tapedeck.adopt.${workspace}.${developer}.${project}.${upstream}`;
}

export const everyObservedSubject = `${observedRoot}.>`;

/** The source of an event's subject. */
export function sourceOfSubject(subject: string): SourceName | undefined {
  const parts = subject.split(".");
  return parts.length === 8 && `${parts[0]}.${parts[1]}` === root
    ? (parts.slice(2, 6).join("/") as SourceName)
    : undefined;
}

/** Where the end of each source is kept (a stream of its own, beside the log). */
export function endSubject(source: SourceName): string {
  const { workspace, developer, project, upstream } = sourceParts(source);
  return `${endsRoot}.source.${workspace}.${developer}.${project}.${upstream}`;
}

export const endsStream = "TAPEDECK_ENDS";
export const endsRoot = "tapedeck.ends";

/** How far query's tables have come. */
export const tablesEndSubject = `${endsRoot}.tables`;

function sourceSubject(source: SourceName): string {
  const { workspace, developer, project, upstream } = sourceParts(source);
  return `${root}.${workspace}.${developer}.${project}.${upstream}`;
}
