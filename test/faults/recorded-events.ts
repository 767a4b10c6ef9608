import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, mayHoldEvents } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceName } from "@tapedeck/shared/source";

export const skaffoldSource = (developer: string, project = "shop", workspace = "default"): SourceName =>
  sourceName({ workspace, developer, project, upstream: "skaffold" });

/** Returns all events of a source, reading on from the end of the last call. Rejects while the log is unavailable. */
export function sourceEvents(log: LogReader, source: SourceName): () => Promise<readonly RecordedEvent[]> {
  const seen: RecordedEvent[] = [];
  const subjects = [sourceFilter(source)];
  return async () => {
    const last = await log.lastMatch(subjects);
    const afterOffset = seen.at(-1)?.offset ?? logStart;
    if (mayHoldEvents(afterOffset, last)) {
      const signal = AbortSignal.timeout(30_000);
      for await (const recorded of log.history({ afterOffset, subjects }, last, signal)) seen.push(recorded);
    }
    return seen;
  };
}

/** The ids of sessions in their order. */
export function sessionsOf(events: readonly RecordedEvent[]): string[] {
  return events.flatMap(({ event }) => (event.kind === "session.started" ? [event.session] : []));
}

/** The verbatim frames of a channel, as text to compare. */
export function framesOf(events: readonly RecordedEvent[], channel: string, session?: string): string[] {
  return events.flatMap(({ event }) =>
    event.channel === channel && event.part === 0 && (session === undefined || event.session === session)
      ? [event.original?.bytes.toString("base64") ?? ""]
      : [],
  );
}

/**
 * Returns what must be the same regardless of kills: every event of an upstream's own channel with all its fields.
 * Leaves out which session (only its number counts), when Tapedeck saw it, and its position in the log.
 */
export function lasting(events: readonly RecordedEvent[], channel: string): readonly object[] {
  const sessions = sessionsOf(events);
  return events
    .filter(({ event }) => event.channel === channel)
    .map(({ event: { id: _id, source: _source, observed_at: _at, session, ...fields } }) => ({
      session: sessions.indexOf(session),
      ...fields,
    }));
}

/**
 * Returns the holes: ordinals of each session's channels (of "tapedeck": of the source) must count 1, 2, 3 … without
 * any.
 */
export function holes(events: readonly RecordedEvent[]): string[] {
  const last = new Map<string, bigint>();
  return events.flatMap(({ event: { session, channel, ordinal, id } }) => {
    const key = channel === "tapedeck" ? channel : `${session}.${channel}`;
    const expected = (last.get(key) ?? 0n) + 1n;
    last.set(key, ordinal);
    return ordinal === expected ? [] : [`${id}, expected ${expected}`];
  });
}

export function kindsOf(events: readonly RecordedEvent[]): string[] {
  return events.flatMap(({ event }) => (event.channel === "tapedeck" ? [event.kind] : []));
}

export function gapsOf(events: readonly RecordedEvent[], channel: string): readonly Event[] {
  return events.flatMap(({ event }) =>
    event.detail?.$case === "gap" && event.detail.value.channel === channel ? [event] : [],
  );
}
