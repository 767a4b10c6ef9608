import { kindNoun } from "../events/kinds.ts";
import { type SourceName, sourceParts } from "../source.ts";

export const streamName = "TAPEDECK";

const root = "tapedeck.v1";

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

/** Everything of a workspace. */
export function workspaceFilter(workspace: string): string {
  return `${root}.${workspace}.>`;
}

export const everySubject = `${root}.>`;

/** Where control calls for a source are asked (core NATS request, not in the stream). */
export function controlSubject(source: SourceName): string {
  const { workspace, developer, project, upstream } = sourceParts(source);
  return `tapedeck.control.${workspace}.${developer}.${project}.${upstream}`;
}

function sourceSubject(source: SourceName): string {
  const { workspace, developer, project, upstream } = sourceParts(source);
  return `${root}.${workspace}.${developer}.${project}.${upstream}`;
}
