import type { HistoryRow, OperationRow, SessionRow } from "../../db/schema.ts";
import { key, text } from "../../db/text.ts";
import { possibleTimestampOf } from "../../db/timestamp.ts";
import type { CauseColumns } from "../causes/cause-columns.ts";
import { unitOf, wholeSession } from "./unit.ts";

export type UnitDetails = {
  readonly artifacts: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
};

/** `recordedAt`: when its beginning was recorded. A clock that is ahead of the log's must not keep a row on top. */
export function rowOfOperation(row: OperationRow, details: UnitDetails, recordedAt: string | undefined): HistoryRow {
  const { kind, id, runner, loop, outcome, subject, instance, error } = row;
  const own = {
    unit: unitOf(row),
    kind,
    id,
    runner,
    loop,
    outcome: outcome ?? (row.end_position === null ? "" : "unknown"),
  };
  return rowOf(row, { own, names: [subject, instance, error], details, recordedAt });
}

export function rowOfSession(row: SessionRow, details: UnitDetails, recordedAt: string | undefined): HistoryRow {
  const { exit_code, end_position, command_line } = row;
  const outcome =
    end_position === null ? "" : exit_code === null ? "unknown" : exit_code === 0 ? "succeeded" : "failed";
  const own = { unit: wholeSession, kind: "session", id: "", runner: 0, loop: 0, outcome };
  return rowOf(row, { own, names: [command_line], details, recordedAt });
}

type SourceColumns = Pick<
  HistoryRow,
  "source" | "workspace" | "developer" | "project" | "upstream" | "session" | "start_position"
>;
type UnitRow = SourceColumns & CauseColumns & Pick<SessionRow, "started_at" | "started_ns" | "ended_at">;

type Parts = {
  readonly own: Pick<HistoryRow, "unit" | "kind" | "id" | "runner" | "loop" | "outcome">;
  readonly names: readonly string[];
  readonly details: UnitDetails;
  readonly recordedAt: string | undefined;
};

function rowOf(row: UnitRow, { own, names, details, recordedAt }: Parts): HistoryRow {
  const { source, workspace, developer, project, upstream, session, start_position, cause, reason } = row;
  const { artifacts, labels } = details;
  const started = row.started_at ?? row.ended_at;
  const isPossible = started !== null && possibleTimestampOf(started, row.started_ns) !== undefined;
  const recorded = recordedAt ?? started ?? neverSet;
  const began = isPossible ? started : recorded;
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const place = row.cause_file === "" ? "" : [row.cause_file, row.cause_line].filter((part) => part !== null).join(":");
  const lines = [cause, reason, place, ...names, ...artifacts, ...pairs].filter((line) => line !== "");
  const tags = [
    tag(workspace, "kind", own.kind),
    tag(workspace, "outcome", own.outcome),
    ...(reason === "" ? [] : [tag(workspace, "reason", reason)]),
    ...artifacts.map((name) => tag(workspace, "artifact", name)),
    ...pairs.map((pair) => tag(workspace, "label", pair)),
  ];
  return {
    source,
    workspace,
    developer,
    project,
    upstream,
    session,
    ...own,
    at: [recorded, began].toSorted()[0] ?? recorded,
    recorded_at: recorded,
    cause,
    reason,
    text: text(lines.map((line) => line.slice(0, longestLine)).join("\n")),
    artifacts,
    labels,
    tags,
    start_position,
  };
}

const neverSet = "1970-01-01T00:00:00.000000Z";
const longestLine = 4_000;

export type TagField = "kind" | "outcome" | "reason" | "artifact" | "label";

/** What a row is found by, of its workspace alone. */
export function tag(workspace: string, field: TagField, value: string): string {
  return key(`${workspace}/${field}:${value}`);
}
