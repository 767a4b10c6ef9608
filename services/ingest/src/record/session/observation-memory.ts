import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { laterOf, messagesBefore, type Offset } from "@tapedeck/shared/log/offset";
import { channelFilter, eventSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import type { KnownSession } from "../journal/known-sessions.ts";
import type { LogHistoryReader } from "../journal/load-history.ts";

export type ObservationMemory = {
  readonly reader: LogHistoryReader;
  readonly source: SourceName;
  readonly channel: string;
  readonly session: KnownSession;
  readonly signal: AbortSignal;
};

/** A watcher's memory: the session's last complete description of a channel, and every event after it. */
export async function* rememberedEvents(memory: ObservationMemory): AsyncGenerator<Event, void> {
  const { reader, source, channel, session, signal } = memory;
  const description = await lastDescription(memory);
  for (const { event } of description) yield event;
  const subjects = [channelFilter(source, channel)];
  const afterOffset = description.at(-1)?.offset ?? session.afterOffset;
  const until = await reader.lastMatch(subjects);
  for await (const { event } of reader.history({ afterOffset, subjects }, until, signal)) {
    // An incomplete description is void. The one before it counts, and every event after that one.
    if (event.session === session.id && event.kind !== "inventory.described") yield event;
  }
}

type DescriptionPart = { readonly offset: Offset; readonly event: Event };

/** Its parts in order; empty if none is complete. Searches further and further back, because there may be many events. */
async function lastDescription({
  reader,
  source,
  channel,
  session,
  signal,
}: ObservationMemory): Promise<readonly DescriptionPart[]> {
  const subjects = [eventSubject(source, channel, "inventory.described")];
  const last = await reader.lastMatch(subjects);
  for (let back = 1_000; last > session.afterOffset; back *= 8) {
    const afterOffset = laterOf(session.afterOffset, messagesBefore(last, back));
    let found: readonly DescriptionPart[] = [];
    let parts: readonly DescriptionPart[] = [];
    for await (const { event, offset } of reader.history({ afterOffset, subjects }, last, signal)) {
      if (event.session !== session.id || event.detail?.$case !== "host") continue;
      const { part, parts: all } = event.detail.value;
      parts = part === 0 ? [{ offset, event }] : part === parts.length ? [...parts, { offset, event }] : [];
      if (parts.length === all) found = parts;
    }
    signal.throwIfAborted();
    if (found.length > 0 || afterOffset === session.afterOffset) return found;
  }
  return [];
}
