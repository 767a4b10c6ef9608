import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Recorded } from "@tapedeck/shared/log/log";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import type { VagrantJobRow, VagrantJobVersionRow } from "../../db/schema.ts";
import { find, insert, table, upsert } from "../../db/table.ts";
import { key } from "../../db/text.ts";
import { endsSession } from "../operations/pairing.ts";
import type { View } from "../view.ts";
import { abandoned, evolve, isOfJob } from "./job-row.ts";

const jobs = table("vagrant_jobs", ["session", "job"]);

const versions = table("vagrant_job_versions", ["position"]);

/**
 * Vagrant's jobs, each a row, and what was answered of each at any position. They are no part of a session's folded
 * state: there may be many, a message may be large, and they are asked for by their ids, years later.
 */
export const vagrantJobs: View = {
  name: "vagrant_jobs",
  version: 1,
  sessionTables: ["vagrant_jobs", "vagrant_job_versions"],
  async apply(tx, batch) {
    const told = batch.filter(({ event }) => isVagrants(event) && (isOfJob(event) || endsSession(event)));
    if (told.length === 0) return;
    const rows = new Map((await known(tx, told)).map((row) => [keyOf(row), row]));
    const changed = new Map<string, VagrantJobRow>();
    const added: VagrantJobVersionRow[] = [];
    const put = (row: VagrantJobRow) => {
      rows.set(keyOf(row), row);
      changed.set(keyOf(row), row);
    };
    for (const recorded of told) {
      const { session, subject } = recorded.event;
      if (endsSession(recorded.event)) {
        for (const row of rows.values()) {
          if (row.session === session && row.outcome === null) put(abandoned(row, recorded));
        }
      } else {
        const before = rows.get(keyOf({ session, job: key(subject) }));
        const after = evolve(before, recorded);
        put(after);
        const { source, job, message } = after;
        // The very same where the event has no answer of its own.
        if (message !== null && message !== before?.message) {
          added.push({ session, source, job, position: recorded.seq, message });
        }
      }
    }
    await upsert(tx, jobs, [...changed.values()]);
    await insert(tx, versions, added);
  },
};

export function isVagrants({ source }: Event): boolean {
  return sourceParts(source as SourceName).upstream === "vagrant";
}

/** Of the jobs that the batch tells of, and of those that are not over in the sessions that end in it. */
async function known(tx: Tx, batch: readonly Recorded[]): Promise<readonly VagrantJobRow[]> {
  const told = new Map<string, Pick<VagrantJobRow, "session" | "job">>();
  for (const { event } of batch.filter(({ event }) => isOfJob(event))) {
    const row = { session: event.session, job: key(event.subject) };
    told.set(keyOf(row), row);
  }
  const ended = batch.filter(({ event }) => endsSession(event)).map(({ event }) => event.session);
  const { rows: running } = await sql<VagrantJobRow>`
    select * from vagrant_jobs where session = any(${ended}::text[]) and outcome is null`.execute(tx);
  return [...running, ...(await find(tx, jobs, [...told.values()]))];
}

function keyOf({ session, job }: Pick<VagrantJobRow, "session" | "job">): string {
  return JSON.stringify([session, job]);
}
