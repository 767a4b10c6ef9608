import { Outcome, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { Recorded } from "@tapedeck/shared/log/log";
import { momentOf, momentOfDate } from "../../db/moment.ts";
import type { EventRow, OutcomeText } from "../../db/schema.ts";
import { key, longText, plain, text } from "../../db/text.ts";
import { sourceColumns } from "../view.ts";

export function eventRow({ event, seq, recordedAt }: Recorded): EventRow {
  const occurred = momentOf(event.occurred_at);
  return {
    ...sourceColumns(event.source),
    position: seq,
    recorded_at: momentOfDate(recordedAt),
    id: event.id,
    session: event.session,
    channel: event.channel,
    ordinal: Number(event.ordinal),
    frame_ordinal: Number(event.frame_ordinal),
    part: event.part,
    kind: event.kind,
    subject: key(event.subject),
    outcome: outcomeText(event.outcome),
    error_code: text(event.error?.code ?? ""),
    error: longText(event.error?.message ?? ""),
    summary: longText(event.summary),
    occurred_at: occurred.at,
    occurred_ns: occurred.ns,
    time_source: timeSourceText(event.time_source),
    not_before: momentOf(event.not_before).at,
    observed_at: momentOf(event.observed_at).at,
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

function outcomeText(outcome: Outcome): OutcomeText | null {
  switch (outcome) {
    case Outcome.OUTCOME_SUCCEEDED:
      return "succeeded";
    case Outcome.OUTCOME_FAILED:
      return "failed";
    case Outcome.OUTCOME_CANCELED:
      return "canceled";
    case Outcome.OUTCOME_UNKNOWN:
      return "unknown";
    default:
      return null;
  }
}

function timeSourceText(source: TimeSource): string {
  switch (source) {
    case TimeSource.TIME_SOURCE_UPSTREAM:
      return "upstream";
    case TimeSource.TIME_SOURCE_OBSERVED:
      return "observed";
    case TimeSource.TIME_SOURCE_INTERVAL:
      return "interval";
    default:
      return "";
  }
}
