import type { Recorded } from "@tapedeck/shared/log/log";
import { momentOf, momentOfDate } from "../../db/moment.ts";
import type { SourceRow, SourceStatus } from "../../db/schema.ts";
import { longText, text } from "../../db/text.ts";
import { sourceColumns } from "../view.ts";

export function evolve(row: SourceRow | undefined, recorded: Recorded): SourceRow {
  const { event, seq } = recorded;
  const before = row ?? unseen(recorded);
  const occurred = momentOf(event.occurred_at ?? event.observed_at);
  return {
    ...before,
    ...described(recorded, before),
    status: statusAfter(before.status, recorded),
    last_position: seq,
    last_event_at: occurred.at ?? momentOfDate(recorded.recordedAt),
    last_event_ns: occurred.ns,
  };
}

function unseen({ event, seq }: Recorded): SourceRow {
  return {
    ...sourceColumns(event.source),
    developer_name: "",
    project_name: "",
    status: "waiting",
    address: "",
    first_position: seq,
    last_position: seq,
    last_event_at: null,
    last_event_ns: 0,
  };
}

function described({ event }: Recorded, before: SourceRow): Partial<SourceRow> {
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

/** Recording: connected. Lost: it hung up in mid-session. Waiting: for the next process, or for the first. */
function statusAfter(status: SourceStatus, { event }: Recorded): SourceStatus {
  switch (event.kind) {
    case "upstream.connected":
    case "upstream.restored":
      return "recording";
    case "upstream.lost":
      // One stream of a connection may break (Skaffold's v2, of bad UTF-8) while the others go on.
      return status === "recording" && !isOneChannel(event.detail) ? "lost" : status;
    case "session.ended":
      return "waiting";
    case "session.lost":
      return "lost";
    default:
      return status;
  }
}

function isOneChannel(detail: Recorded["event"]["detail"]): boolean {
  return detail?.$case === "upstream" && detail.value.channel !== "";
}
