import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { Developer } from "@tapedeck/shared/log/erasures/developer-erasures";
import { justBefore, logStart, type Offset, type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { sourcesFilter } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { type EraseDeps, goesOnAfter } from "./erase-session.ts";

export type DeveloperSession = {
  readonly source: SourceName;
  readonly session: string;
  /** All of it is after this. */
  readonly afterOffset: Offset;
  /** It has neither ended nor lost its upstream. */
  goesOn: boolean;
  /** Its mark is behind all of it. */
  marked: boolean;
};

/** What the log has of a developer: the sources, and their sessions, the oldest first. */
export type DeveloperSources = {
  /** With the sequence of the mark source.erased, where nothing is behind it. */
  readonly sources: ReadonlyMap<SourceName, Sequence | undefined>;
  readonly sessions: readonly DeveloperSession[];
};

/** Reads Tapedeck's own channel, which every source begins with. Rejects when the signal aborts. */
export async function sourcesOfDeveloper(
  { workspace, developer }: Developer,
  { log, signal }: EraseDeps,
): Promise<DeveloperSources> {
  const { lastOffset } = await log.reader.bounds();
  const all = sourcesFilter({ workspace, developer, project: undefined, upstream: undefined });
  const subjects = [all.replace(/>$/, `${ownChannel}.*`)];
  const sources = new Map<SourceName, Sequence | undefined>();
  const sessions = new Map<string, DeveloperSession>();
  for await (const { event, offset } of log.reader.history({ afterOffset: logStart, subjects }, lastOffset, signal)) {
    const source = event.source as SourceName;
    sources.set(source, event.kind === "source.erased" ? sequenceOf(offset) : undefined);
    if (event.session === "") continue;
    const known = sessions.get(event.session);
    const one = known ?? {
      source,
      session: event.session,
      afterOffset: justBefore(offset),
      goesOn: false,
      marked: false,
    };
    if (known === undefined) sessions.set(event.session, one);
    // Events after a mark were imported anew.
    one.marked = event.kind === "session.erased";
    one.goesOn = goesOnAfter(event) ?? one.goesOn;
  }
  signal.throwIfAborted();
  return { sources, sessions: [...sessions.values()] };
}
