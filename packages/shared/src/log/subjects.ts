import { kindNoun, ownChannel, textKinds } from "../events/kinds.ts";
import { asciiName, nameOfAscii, type SourceName, type SourceParts } from "../source.ts";
import { withoutCovered } from "./subject-match.ts";

/** A workspace's log is a stream of its own. No other stream of Tapedeck begins so, in any case of the letters. */
const streamPrefix = "TAPEDECK_LOG_";

/** The stream of a workspace's log: at most 205 characters, and different for each name, also on a disk that knows no cases. */
export function streamOf(workspace: string): string {
  return `${streamPrefix}${asciiName(workspace)}`;
}

/** Undefined for another stream than a log. */
export function workspaceOfStream(stream: string): string | undefined {
  return stream.startsWith(streamPrefix) ? nameOfAscii(stream.slice(streamPrefix.length)) : undefined;
}

const root = "tapedeck.v2";
const observedRoot = "tapedeck.observed";
const lastSeenRoot = "tapedeck.heard";

/** Takes the place of the channel in the subject of messages with the upstream's frames. */
const framesToken = "frames";

/** Facts stay in the log. Text may expire. A message of text holds nothing else; one of facts may hold some text that stays. */
export type RetentionClass = "facts" | "text";

/** The nouns of text. */
const textNouns: readonly string[] = textKinds.map(kindNoun);

/**
 * An event's name in filters: tapedeck.v2.<workspace>.<developer>.<project>.<upstream>.<channel>.<kind noun>. A message
 * holds several events, so its own subject is less specific; see messageSubject.
 */
export function eventSubject(source: SourceName, channel: string, kind: string): string {
  return `${sourceSubject(source)}.${channel}.${kindNoun(kind)}`;
}

/**
 * Subject of the message for an event: …<upstream>.frames.<class> for the upstream's own, on all channels. Tapedeck's
 * own events are rare, and looked up by their noun: …<upstream>.tapedeck.<kind noun>.
 */
export function messageSubject(source: SourceName, channel: string, kind: string, retention: RetentionClass): string {
  return channel === ownChannel
    ? eventSubject(source, channel, kind)
    : `${sourceSubject(source)}.${framesToken}.${retention}`;
}

/** Whether events of these messages may share one: all frames of a source may. */
export function mayShare(subject: string, other: string): boolean {
  return subject === other || (isFrames(subject) && isFrames(other) && placeOf(subject) === placeOf(other));
}

/** Whether a message holds an event of Tapedeck's own. */
export function isOwnSubject(messageSubject: string): boolean {
  return placeOf(messageSubject).endsWith(`.${ownChannel}`);
}

/** Whether a message holds text, which may expire. */
export function isTextSubject(messageSubject: string): boolean {
  return isFrames(messageSubject) && messageSubject.endsWith(".text");
}

function isFrames(messageSubject: string): boolean {
  return messageSubject.endsWith(`.${framesToken}.facts`) || messageSubject.endsWith(`.${framesToken}.text`);
}

function placeOf(subject: string): string {
  return subject.slice(0, subject.lastIndexOf("."));
}

/** The subjects of all messages that may hold an event that one of the filters matches. */
export function messageFilters(eventFilters: readonly string[]): readonly string[] {
  return withoutCovered(eventFilters.flatMap(messagesOf));
}

function messagesOf(eventFilter: string): readonly string[] {
  const tokens = eventFilter.split(".");
  const [channel, noun] = tokens.slice(6);
  if (tokens.length !== 8 || channel === undefined || noun === undefined || noun === ">") return [eventFilter];
  const place = tokens.slice(0, 6).join(".");
  // Text may stand among facts.
  const retention = noun === "*" || textNouns.includes(noun) ? "*" : "facts";
  const own = channel === "*" || channel === ownChannel ? [`${place}.${ownChannel}.${noun}`] : [];
  const frames = channel === ownChannel ? [] : [`${place}.${framesToken}.${retention}`];
  return [...own, ...frames];
}

/** The channels of all events that one of the filters matches; undefined: any. */
export function channelsOf(eventFilters: readonly string[]): ReadonlySet<string> | undefined {
  // A filter with fewer tokens ends with ">".
  const channels = eventFilters.map((filter) => filter.split(".", 8).at(6) ?? ">");
  const isOpen = (channel: string) => channel === "*" || channel === ">";
  return channels.length === 0 || channels.some(isOpen) ? undefined : new Set(channels);
}

/** Makes the subjects of a message's events. */
export function eventSubjectsIn(message: string): (channel: string, kind: string) => string {
  const place = message.split(".", 6).join(".");
  return (channel, kind) => `${place}.${channel}.${kindNoun(kind)}`;
}

/** Everything of a source; also the filter of the writer's expectation. */
export function sourceFilter(source: SourceName): string {
  return `${sourceSubject(source)}.>`;
}

/** Everything of all sources with these parts in their names; undefined: any. */
export function sourcesFilter(parts: { readonly [Part in keyof SourceParts]: string | undefined }): string {
  const tokens = ["workspace", "developer", "project", "upstream"] as const;
  return `${root}.${tokens.map((part) => asciiName(parts[part] ?? "*")).join(".")}.>`;
}

/** All events of one channel of a source. */
export function channelFilter(source: SourceName, channel: string): string {
  return `${sourceSubject(source)}.${channel}.*`;
}

/** Tapedeck's own events about the sessions and upstreams of all sources. */
export const lifecycleSubjects = ["session", "upstream"].map((noun) => `${root}.*.*.*.*.${ownChannel}.${noun}`);

/** Tapedeck's own events of all sources: each source begins with one. */
export const everyOwnSubject = `${root}.*.*.*.*.${ownChannel}.*`;

/** Everything of a workspace. */
export function workspaceFilter(workspace: string): string {
  return `${root}.${asciiName(workspace)}.>`;
}

/** The subjects of all events of all logs. */
export const everySubject = `${root}.>`;

/** Where control calls for a source are requested (core NATS request, not in the stream). */
export function controlSubject(source: SourceName): string {
  return `tapedeck.control.${placeIn(source)}`;
}

/** Where the steps of a stream to an upstream go (core NATS messages, not in the stream). `stream`: its ULID. */
export function streamSubject(to: "upstream" | "client", stream: string): string {
  return `tapedeck.stream.${to}.${stream}`;
}

/** Where record publishes what a source's upstream answered about itself (core NATS message, not in the stream). */
export function observedSubject(source: SourceName): string {
  return `${observedRoot}.${placeIn(source)}`;
}

/** Where query asks record to adopt what a source's upstream answered about itself (core NATS message, not in the stream). */
export function adoptSubject(source: SourceName): string {
  return `tapedeck.adopt.${placeIn(source)}`;
}

/** Where record publishes when a polled source was heard last (core NATS message, not in the stream). */
export function lastSeenSubject(source: SourceName): string {
  return `${lastSeenRoot}.${placeIn(source)}`;
}

/** The subjects of all sources that are heard. */
export const everyLastSeenSubject = `${lastSeenRoot}.>`;

/** The subjects of all observed states. */
export const everyObservedSubject = `${observedRoot}.>`;

/** The source of an event's or a message's subject. */
export function sourceOfSubject(subject: string): SourceName | undefined {
  const parts = subject.split(".");
  return parts.length === 8 && `${parts[0]}.${parts[1]}` === root
    ? (parts.slice(2, 6).map(nameOfAscii).join("/") as SourceName)
    : undefined;
}

/** The stream that knows how far sources and tables have come, outside the logs. */
export const endsStream = "TAPEDECK_ENDS";

const endsRoot = "tapedeck.ends";

/** All subjects of that stream. */
export const everyEndSubject = `${endsRoot}.>`;

/** What is kept there of a workspace. */
export type EndSubjects = {
  readonly all: string;
  /** The end of each source is in one; see endSubject. */
  readonly sources: string;
  /** How far query's tables have come. */
  readonly tables: string;
  /** Where the log begins on purpose. */
  readonly first: string;
  /** What the log has lost. */
  readonly holes: string;
  /** The key of frames' identities. */
  readonly key: string;
  /** Sources that have a place, but no end yet. */
  readonly reserved: string;
};

export function endSubjects(workspace: string): EndSubjects {
  const root = `${endsRoot}.${asciiName(workspace)}`;
  return {
    all: `${root}.>`,
    sources: `${root}.source.>`,
    tables: `${root}.tables`,
    first: `${root}.first`,
    holes: `${root}.holes`,
    key: `${root}.key`,
    reserved: `${root}.reserved`,
  };
}

/** Where the end of a source is kept. */
export function endSubject(source: SourceName): string {
  const [workspace, ...parts] = placeIn(source).split(".");
  return `${endsRoot}.${workspace}.source.${parts.join(".")}`;
}

/** The source of such a subject. */
export function sourceOfEndSubject(subject: string): SourceName {
  const [, , workspace = "", , ...parts] = subject.split(".");
  return [workspace, ...parts].map(nameOfAscii).join("/") as SourceName;
}

function sourceSubject(source: SourceName): string {
  return `${root}.${placeIn(source)}`;
}

/** Its parts as tokens of a subject. */
function placeIn(source: SourceName): string {
  return asciiName(source).replaceAll("/", ".");
}
