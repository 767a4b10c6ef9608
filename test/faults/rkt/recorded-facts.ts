import type { InventoryKind } from "@tapedeck/fakes/rkt/recording";
import { type Event, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Host } from "../../harness/rkt-harness.ts";

export type RecordedFact = {
  /** The pod or image; "" for a description of the host. */
  readonly item: string;
  /** The part that must be the same regardless of kills. */
  readonly lasting: ReturnType<typeof lastingOf>;
  readonly summary: string;
  /** Rows of the recording: observed after the first, and at the second. */
  readonly after: number | undefined;
  readonly seen: number;
  /** Observed in an answer, not inferred from its absence. */
  readonly isListed: boolean;
};

export type History = { readonly events: readonly RecordedEvent[]; readonly host: Host };

/** Returns the recorded facts of the pods, or of the images. */
export function recordedFacts(
  { events, host }: Pick<History, "events"> & { readonly host: Pick<Host, "rowAt"> },
  kind: InventoryKind,
): readonly RecordedFact[] {
  const own = wholeDescriptions(events.flatMap(({ event }) => (event.channel === kind ? [event] : [])));
  const listed = new Set(own.filter(({ original }) => original !== undefined).map(frameOf));
  return own.map((event) => ({
    item: event.subject.split("/")[0] ?? "",
    lasting: lastingOf(event),
    summary: event.summary,
    after: event.not_before && host.rowAt(kind, event.not_before),
    seen: event.observed_at === undefined ? 0 : host.rowAt(kind, event.observed_at),
    isListed: listed.has(frameOf(event)),
  }));
}

function frameOf({ session, frame_ordinal }: Event): string {
  return `${session}.${frame_ordinal}`;
}

function lastingOf(event: Event) {
  const { kind, subject, part, outcome, error, summary, time_source, occurred_at, inferred, detail } = event;
  const { operation, redacted, original, observed_at } = event;
  const isObserved =
    time_source === TimeSource.TIME_SOURCE_OBSERVED ||
    (occurred_at?.seconds === observed_at?.seconds && occurred_at?.nanos === observed_at?.nanos);
  return {
    kind,
    subject,
    part,
    outcome,
    error,
    summary,
    time_source,
    inferred,
    detail,
    operation,
    redacted,
    occurred_at: isObserved ? "observed" : occurred_at,
    original: original && { type: original.type, bytes: original.bytes.toString("base64") },
  };
}

/** Ignores a description that a kill cut off: it is recorded again in full. */
function wholeDescriptions(events: readonly Event[]): readonly Event[] {
  const torn = new Set<Event>();
  let parts: Event[] = [];
  for (const event of events) {
    if (event.detail?.$case !== "host") continue;
    const { part, parts: all } = event.detail.value;
    if (part === 0) {
      for (const one of parts) torn.add(one);
      parts = [];
    }
    parts.push(event);
    if (parts.length === all) parts = [];
  }
  for (const one of parts) torn.add(one);
  return events.filter((event) => !torn.has(event));
}
