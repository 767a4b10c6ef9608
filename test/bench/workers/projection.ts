import { monitorEventLoopDelay } from "node:perf_hooks";
import { migrate } from "@tapedeck/query/db/migrate";
import { openDatabase } from "@tapedeck/query/for-cli/maintain";
import { projectUntil, rebuildAll as rebuildTables } from "@tapedeck/query/testing/run-projection";
import { eventsIn } from "@tapedeck/shared/log/batch/batch";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { connect, type NatsConnection } from "nats";

/** Query's projection without its service: turns the log into tables, or only reads the log. */

/** Query knows the workspaces without reading the log. */
const workspaces = ["default"];

let nats: NatsConnection;
let log: Awaited<ReturnType<typeof openLog>>;

const histogram = monitorEventLoopDelay({ resolution: 5 });
histogram.enable();

/** Measures as loop-report.mjs does in a service. */
export function loopHold(): number {
  const held = histogram.max / 1_000_000;
  histogram.reset();
  return held;
}

export async function open(url: string): Promise<number> {
  nats = await connect({ servers: url });
  log = await openLog(nats, { workspace: "default", create: false, syncKnown: true });
  return sequenceOf((await log.reader.bounds()).lastOffset);
}

/** Makes the tables in advance, so that a run does not include it. */
export async function prepare(database: string): Promise<void> {
  await using opened = openDatabase({ url: database, connections: 2 });
  await migrate(opened);
}

/** Resolves when the tables reflect the log to this sequence. */
export async function project(database: string, until: number): Promise<void> {
  await projectUntil(database, log.reader, until, { workspaces });
}

/** Builds the tables anew beside the existing ones, and swaps them in. */
export async function rebuildAll(database: string): Promise<void> {
  await rebuildTables(database, log.reader, workspaces);
}

/** Reads the log's messages as its server delivers them and does nothing with them. Resolves with the number of events. */
export async function readOnly(): Promise<number> {
  const signal = AbortSignal.timeout(600_000);
  const last = sequenceOf((await log.reader.bounds()).lastOffset);
  let count = 0;
  for await (const { data } of log.stored({ first: 1, last, subjects: [] }, signal)) count += eventsIn(data).length;
  return count;
}
