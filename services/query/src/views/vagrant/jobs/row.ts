import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Job } from "@tapedeck/proto/vagrant/vagrant";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { VagrantJobRow } from "../../../db/schema.ts";
import { key, longText, text } from "../../../db/text.ts";
import { storedTimestamp } from "../../../db/timestamp.ts";
import { outcomeOf } from "../../operations/pairing.ts";
import { exitCodeOf } from "../../operations/rows.ts";
import { messageOf } from "../../states/message-of.ts";

const ends = new Set(["job.succeeded", "job.failed", "job.canceled", "job.lost"]);

/** The job's row after one event about it (see isOfJob), in the order of the log. Total, like the folds. */
export function rowAfter(row: VagrantJobRow | undefined, { event, offset }: RecordedEvent): VagrantJobRow {
  const before = row ?? firstRow(event, offset);
  return { ...before, ...described(event, before), ...answered(event), ...ended(event), last_position: offset };
}

export function isOfJob({ channel, subject, detail }: Event): boolean {
  return channel === "jobs" && subject !== "" && (detail?.$case === "job" || detail?.$case === "command");
}

/** The row of a job that runs when its session ends: its outcome is unknown unless a later event reports it. */
export function abandoned(row: VagrantJobRow, { offset }: RecordedEvent): VagrantJobRow {
  return { ...row, outcome: "unknown", last_position: offset };
}

function firstRow({ session, source, subject }: Event, offset: Offset): VagrantJobRow {
  return {
    session,
    source,
    job: key(subject),
    operation: "",
    command: "",
    args: [],
    scope: "",
    scope_id: "",
    scope_name: "",
    runner: "",
    state: "",
    stale: false,
    queued_at: null,
    assigned_at: null,
    started_at: null,
    cancel_requested_at: null,
    completed_at: null,
    expires_at: null,
    outcome: null,
    exit_code: null,
    error_code: "",
    error: "",
    first_position: offset,
    last_position: offset,
    message: null,
  };
}

/** A description never clears a column: the event that reports a loss may not know what the job was. */
function described({ detail }: Event, before: VagrantJobRow): Partial<VagrantJobRow> {
  if (detail?.$case !== "job") return {};
  const { operation, command, args, scope, scope_id, scope_name, runner, state, stale } = detail.value;
  return {
    operation: text(operation) || before.operation,
    command: text(command) || before.command,
    args: args.length === 0 ? before.args : args.map(text),
    scope: text(scope) || before.scope,
    scope_id: text(scope_id) || before.scope_id,
    scope_name: text(scope_name) || before.scope_name,
    runner: text(runner) || before.runner,
    state: text(state) || before.state,
    stale: stale || before.stale,
  };
}

function answered(event: Event): Partial<VagrantJobRow> {
  const job = messageOf(event, "hashicorp.vagrant.Job", Job);
  if (job === undefined || event.original === undefined) return {};
  return {
    queued_at: storedTimestamp(job.queue_time).at,
    assigned_at: storedTimestamp(job.assign_time).at,
    started_at: storedTimestamp(job.ack_time).at,
    cancel_requested_at: storedTimestamp(job.cancel_time).at,
    completed_at: storedTimestamp(job.complete_time).at,
    expires_at: storedTimestamp(job.expire_time).at,
    message: Buffer.from(event.original.bytes),
  };
}

function ended(event: Event): Partial<VagrantJobRow> {
  const { kind, detail, error } = event;
  if (kind === "command.finished" && detail?.$case === "command") return { exit_code: exitCodeOf(detail.value) };
  if (!ends.has(kind)) return {};
  return { outcome: outcomeOf(event), error_code: text(error?.code ?? ""), error: longText(error?.message ?? "") };
}
