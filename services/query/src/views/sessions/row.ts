import { type CommandRun, TimeSource } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { SessionRow } from "../../db/schema.ts";
import { key, longText, text } from "../../db/text.ts";
import { storedTimestamp } from "../../db/timestamp.ts";
import { noCause } from "../causes/cause-columns.ts";
import { sourceColumns } from "../view.ts";

/** The session's row after one event. Recording may begin mid-session, so any event of a session creates its row. */
export function rowAfter(row: SessionRow | undefined, recorded: RecordedEvent): SessionRow {
  const { event, offset } = recorded;
  const before = row ?? firstRow(recorded);
  const updated = { ...before, ...described(recorded, before), last_position: offset };
  switch (event.kind) {
    case "session.started": {
      const started = storedTimestamp(event.occurred_at);
      return { ...open(updated), started_at: started.at, started_ns: started.ns };
    }
    case "upstream.restored":
      return open(updated);
    case "session.ended":
    case "session.lost": {
      const isObserved = event.time_source !== TimeSource.TIME_SOURCE_INTERVAL;
      const ended = storedTimestamp(isObserved ? event.occurred_at : undefined);
      const detail = event.detail?.$case === "session_detail" ? event.detail.value : undefined;
      return {
        ...updated,
        ended_at: ended.at,
        ended_ns: ended.ns,
        end_reason: longText(detail?.reason ?? ""),
        end_position: offset,
        exit_code: detail?.exit_code ?? exitCodeOf(detail?.command_run) ?? null,
        command_line: longText(detail?.command_run?.command_line ?? ""),
      };
    }
    case "session.gap_filled":
      return { ...updated, gaps: Math.max(0, before.gaps - 1) };
    case "session.gap":
      return { ...updated, gaps: before.gaps + 1 };
    default:
      return updated;
  }
}

/** That of a command which only started the upstream's process says nothing about the session. */
function exitCodeOf(run: CommandRun | undefined): number | undefined {
  return run?.wrapper === true ? undefined : run?.exit_code;
}

/** False for an event that only reports how far the session has come. */
export function isInformative({ kind, detail }: RecordedEvent["event"]): boolean {
  return kind.startsWith("session.") || kind.startsWith("upstream.") || detail?.$case === "session_detail";
}

function open(row: SessionRow): SessionRow {
  const running = { ended_at: null, ended_ns: 0, end_reason: "", end_position: null };
  return { ...row, ...running, exit_code: null, command_line: "", ...noCause };
}

function firstRow({ event, offset }: RecordedEvent): SessionRow {
  const started = storedTimestamp(event.occurred_at);
  return {
    ...sourceColumns(event.source),
    session: event.session,
    labels: {},
    upstream_version: "",
    started_at: started.at,
    started_ns: started.ns,
    ended_at: null,
    ended_ns: 0,
    end_reason: "",
    start_position: offset,
    last_position: offset,
    end_position: null,
    gaps: 0,
    exit_code: null,
    command_line: "",
    ...noCause,
  };
}

function described({ event }: RecordedEvent, before: SessionRow): Partial<SessionRow> {
  if (event.detail?.$case !== "session_detail") return {};
  const { labels, upstream_version } = event.detail.value;
  // Later labels are those of loops. The session keeps the ones that it began with.
  const added = Object.entries(event.kind === "session.labelled" ? {} : labels).map(([name, value]) => [
    key(name),
    longText(value),
  ]);
  return {
    ...(added.length > 0 && { labels: { ...before.labels, ...Object.fromEntries(added) } }),
    ...(upstream_version !== "" && { upstream_version: text(upstream_version) }),
  };
}
