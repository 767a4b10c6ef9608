import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import type { Tx } from "../../../db/database.ts";
import type { VagrantJobRow, VagrantJobVersionRow } from "../../../db/schema.ts";
import { find, insert, table, upsert } from "../../../db/table.ts";
import { key } from "../../../db/text.ts";
import { endsSession } from "../../operations/pairing.ts";
import type { View } from "../../view.ts";
import { abandoned, isOfJob, rowAfter } from "./row.ts";

const jobs = table("vagrant_jobs", ["session", "job"]);

const versions = table("vagrant_job_versions", ["session", "position"]);

/**
 * One row for each of Vagrant's jobs, and every version of its message. Jobs are not part of a session's folded state:
 * there may be many, a message may be large, and callers read single jobs by id, years later.
 */
export const vagrantJobs: View = {
  name: "vagrant_jobs",
  version: 1,
  sessionTables: ["vagrant_jobs", "vagrant_job_versions"],
  async apply(tx, batch) {
    const relevant = batch.filter(({ event }) => (isOfJob(event) || endsSession(event)) && isOfVagrant(event));
    if (relevant.length === 0) return;
    const rows = new Map((await knownJobs(tx, relevant)).map((row) => [keyOf(row), row]));
    const changed = new Map<string, VagrantJobRow>();
    const added: VagrantJobVersionRow[] = [];
    const put = (row: VagrantJobRow) => {
      rows.set(keyOf(row), row);
      changed.set(keyOf(row), row);
    };
    for (const recorded of relevant) {
      const { session, subject } = recorded.event;
      if (endsSession(recorded.event)) {
        for (const row of rows.values()) {
          if (row.session === session && row.outcome === null) put(abandoned(row, recorded));
        }
      } else {
        const before = rows.get(keyOf({ session, job: key(subject) }));
        const after = rowAfter(before, recorded);
        put(after);
        const { source, job, message } = after;
        // The same object where the event has no message of its own.
        if (message !== null && message !== before?.message) {
          added.push({ session, source, job, position: recorded.offset, message });
        }
      }
    }
    await upsert(tx, jobs, [...changed.values()]);
    await insert(tx, versions, added);
  },
};

export function isOfVagrant({ source }: Event): boolean {
  return sourceParts(source as SourceName).upstream === "vagrant";
}

/** The rows of the jobs in the batch, and of those that still run in the sessions that end in it. */
async function knownJobs(tx: Tx, batch: readonly RecordedEvent[]): Promise<readonly VagrantJobRow[]> {
  const keys = new Map<string, Pick<VagrantJobRow, "session" | "job">>();
  for (const { event } of batch.filter(({ event }) => isOfJob(event))) {
    const row = { session: event.session, job: key(event.subject) };
    keys.set(keyOf(row), row);
  }
  const ended = batch.filter(({ event }) => endsSession(event)).map(({ event }) => event.session);
  const { rows: running } = await sql<VagrantJobRow>`
    select * from vagrant_jobs where session = any(${ended}::text[]) and outcome is null`.execute(tx);
  return [...running, ...(await find(tx, jobs, [...keys.values()]))];
}

function keyOf({ session, job }: Pick<VagrantJobRow, "session" | "job">): string {
  return JSON.stringify([session, job]);
}
