import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import type { Tx } from "../../../db/database.ts";
import { plannedOnce } from "../../../db/pipeline.ts";
import type { VagrantJobSpanRow } from "../../../db/schema.ts";
import { table, upsert } from "../../../db/table.ts";
import { key } from "../../../db/text.ts";
import type { View } from "../../view.ts";
import { isOfVagrant } from "./jobs.ts";

/**
 * A span ends before a longer run of events of the same channel that belong to other jobs. A reader skips a shorter run,
 * because another reader of the log costs about as much.
 */
const maxGap = 64;

const spans = table("vagrant_job_spans", ["session", "job", "first_position"]);

/**
 * The positions of each job's events in the log, its output included. The jobs of a source share the log's subjects; with
 * the spans, a reader of one job need not read the output of all others.
 */
export const vagrantJobSpans: View = {
  name: "vagrant_job_spans",
  version: 1,
  sessionTables: ["vagrant_job_spans"],
  async apply(tx, batch) {
    const ofJobs = batch.filter(({ event }) => isAboutJob(event));
    if (ofJobs.length === 0) return;
    const last = new Map((await lastSpans(tx, ofJobs)).map((row) => [nameOf(row), row]));
    const changed = new Map<string, VagrantJobSpanRow>();
    for (const recorded of ofJobs) {
      const name = nameOf({ session: recorded.event.session, job: key(recorded.event.subject) });
      const row = spanAfter(last.get(name), recorded);
      last.set(name, row);
      changed.set(`${name} ${row.first_position}`, row);
    }
    await upsert(tx, spans, [...changed.values()]);
  },
};

/** The span that an event of the job belongs to; `last`: the job's last span before the event. */
function spanAfter(last: VagrantJobSpanRow | undefined, { event, offset }: RecordedEvent): VagrantJobSpanRow {
  const ordinal = Number(event.ordinal);
  const { session, source, subject } = event;
  const first_position = last !== undefined && ordinal - last.last_ordinal <= maxGap ? last.first_position : offset;
  return { session, source, job: key(subject), first_position, last_position: offset, last_ordinal: ordinal };
}

function isAboutJob(event: Event): boolean {
  return event.channel === "jobs" && event.subject !== "" && isOfVagrant(event);
}

async function lastSpans(tx: Tx, ofJobs: readonly RecordedEvent[]): Promise<readonly VagrantJobSpanRow[]> {
  const keys = new Map(
    ofJobs.map(({ event }) => {
      const row = { session: event.session, job: key(event.subject) };
      return [nameOf(row), row];
    }),
  );
  const [sessions, jobs] = [[...keys.values()].map((row) => row.session), [...keys.values()].map((row) => row.job)];
  const { rows } = await sql<VagrantJobSpanRow>`${plannedOnce}
    select s.* from unnest(${sessions}::text[], ${jobs}::text[]) as requested (session, job)
    cross join lateral (
      select * from vagrant_job_spans own where own.session = requested.session and own.job = requested.job
      order by own.first_position desc limit 1) as s`.execute(tx);
  return rows;
}

function nameOf({ session, job }: Pick<VagrantJobSpanRow, "session" | "job">): string {
  return JSON.stringify([session, job]);
}
