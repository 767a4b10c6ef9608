import { outcomeNames, timeSourceNames } from "@tapedeck/shared/events/names";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { EventRow } from "../../db/schema.ts";
import { key, longText, plain, text } from "../../db/text.ts";
import { storedTimestamp, textOfDate } from "../../db/timestamp.ts";
import { sourceColumns } from "../view.ts";

export function eventRow({ event, offset, recordedAt }: RecordedEvent): EventRow {
  const occurred = storedTimestamp(event.occurred_at);
  return {
    ...sourceColumns(event.source),
    position: offset,
    recorded_at: textOfDate(recordedAt),
    id: event.id,
    session: event.session,
    channel: event.channel,
    ordinal: Number(event.ordinal),
    frame_ordinal: Number(event.frame_ordinal),
    part: event.part,
    kind: key(event.kind),
    subject: key(event.subject),
    outcome: outcomeNames[event.outcome] || null,
    error_code: text(event.error?.code ?? ""),
    error: longText(event.error?.message ?? ""),
    summary: longText(event.summary),
    occurred_at: occurred.at,
    occurred_ns: occurred.ns,
    time_source: timeSourceNames[event.time_source] ?? "",
    not_before: storedTimestamp(event.not_before).at,
    observed_at: storedTimestamp(event.observed_at).at,
    operation_kind: event.operation?.kind ?? null,
    operation_subject: event.operation === undefined ? null : key(event.operation.subject),
    runner: event.operation?.runner ?? null,
    loop: event.operation?.loop ?? null,
    inferred: event.inferred,
    injected: event.injected,
    redacted: event.redacted,
    detail: plain(event.detail?.value) ?? null,
    original_type: event.original?.type ?? null,
    original_size: event.original === undefined ? null : Number(event.original.size),
  };
}
