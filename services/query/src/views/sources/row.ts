import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { SourceRow, SourceStatus } from "../../db/schema.ts";
import { longText, text } from "../../db/text.ts";
import { storedTimestamp, textOfDate } from "../../db/timestamp.ts";
import { sourceColumns } from "../view.ts";

export function rowAfter(row: SourceRow | undefined, recorded: RecordedEvent): SourceRow {
  const { event, offset } = recorded;
  const before = row ?? firstRow(recorded);
  const link = linkAfter(before, recorded);
  const occurred = storedTimestamp(event.occurred_at ?? event.observed_at);
  return {
    ...before,
    ...described(recorded, before),
    ...link,
    status: statusOf(link),
    not_heard_since: notHeardSince(before, recorded),
    gaps: before.gaps + (event.kind === "session.gap" && event.session === "" ? 1 : 0),
    last_position: offset,
    last_event_at: occurred.at ?? textOfDate(recorded.recordedAt),
    last_event_ns: occurred.ns,
  };
}

/** False for an event that only reports that the source was heard from then. */
export function isInformative({ kind, detail }: RecordedEvent["event"]): boolean {
  return (
    kind.startsWith("upstream.") ||
    kind.startsWith("session.") ||
    detail?.$case === "source_detail" ||
    detail?.$case === "upstream"
  );
}

function firstRow({ event, offset }: RecordedEvent): SourceRow {
  return {
    ...sourceColumns(event.source),
    developer_name: "",
    project_name: "",
    status: "waiting",
    connected: false,
    in_session: false,
    not_heard_since: null,
    gaps: 0,
    address: "",
    first_position: offset,
    last_position: offset,
    last_event_at: null,
    last_event_ns: 0,
  };
}

function described({ event }: RecordedEvent, before: SourceRow): Partial<SourceRow> {
  const { detail } = event;
  if (detail?.$case === "source_detail") {
    return {
      developer_name: longText(detail.value.developer_name) || before.developer_name,
      project_name: longText(detail.value.project_name) || before.project_name,
    };
  }
  if (detail?.$case === "upstream" && detail.value.address !== "") return { address: text(detail.value.address) };
  return {};
}

type Link = Pick<SourceRow, "connected" | "in_session">;

/** A process may replace another before that one's session ends, so connection and session are separate. */
function linkAfter(before: Link, { event }: RecordedEvent): Link {
  const { connected, in_session } = before;
  switch (event.kind) {
    case "upstream.connected":
      return { connected: true, in_session };
    case "upstream.restored":
      // A restored connection may not have been assigned to a session yet.
      return { connected: true, in_session: in_session || event.session !== "" };
    case "upstream.lost":
      // One stream of a connection may break while the others continue: Skaffold's v2 does at invalid UTF-8.
      return { connected: connected && isOneChannel(event.detail), in_session };
    case "session.started":
      return { connected, in_session: true };
    case "session.ended":
      return { connected, in_session: false };
    case "session.lost":
      return { connected: false, in_session: true };
    default:
      return { connected, in_session };
  }
}

/** Set from the loss of the source until it is heard from again, even if its session ends meanwhile; else null. */
function notHeardSince({ not_heard_since }: SourceRow, recorded: RecordedEvent): string | null {
  const { kind, detail } = recorded.event;
  switch (kind) {
    case "upstream.connected":
    case "upstream.restored":
      return null;
    case "upstream.lost":
      return isOneChannel(detail) ? not_heard_since : (not_heard_since ?? lastSeenAt(recorded));
    case "session.lost":
      return not_heard_since ?? lastSeenAt(recorded);
    default:
      return not_heard_since;
  }
}

/** The time of the loss, or the last time at which the source was heard from if the loss itself was not observed. */
function lastSeenAt({ event, recordedAt }: RecordedEvent): string {
  return storedTimestamp(event.not_before).at ?? storedTimestamp(event.occurred_at).at ?? textOfDate(recordedAt);
}

/** Lost: disconnected during a session. Waiting: for the first or the next process. */
function statusOf({ connected, in_session }: Link): SourceStatus {
  if (connected) return "recording";
  return in_session ? "lost" : "waiting";
}

function isOneChannel(detail: RecordedEvent["event"]["detail"]): boolean {
  return detail?.$case === "upstream" && detail.value.channel !== "";
}
