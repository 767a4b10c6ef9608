import type { LogReader } from "@tapedeck/shared/log/log";
import { endOf, type Sequence } from "@tapedeck/shared/log/offset";
import { openDatabase } from "../db/database.ts";
import { takeTables } from "../db/lock.ts";
import { migrate } from "../db/migrate.ts";
import type { BatchLimits } from "../projecting/batches.ts";
import { project } from "../projecting/project.ts";
import { rebuild } from "../projecting/rebuild.ts";
import type { View } from "../views/view.ts";
import { views } from "../views/views.ts";
import { limitedTo, logsIn, workspacesIn } from "./logs.ts";

export type ProjectUntil = {
  readonly limits?: BatchLimits;
  readonly textRows?: boolean;
  readonly views?: readonly View[];
  /** By default those that have events, for which the log is read once more. */
  readonly workspaces?: readonly string[];
};

/** Projects until the tables of each workspace hold the message. */
export async function projectUntil(
  url: string,
  log: LogReader,
  seq: Sequence,
  options: ProjectUntil = {},
): Promise<void> {
  await using database = openDatabase({ url, connections: 2 });
  await migrate(database);
  await using tables = await takeTables(database);
  const all = options.views ?? views({ textRows: options.textRows ?? false });
  const { limits } = options;
  for (const workspace of options.workspaces ?? (await workspacesIn(log))) {
    const left = new AbortController();
    const work = project({
      connection: tables.pipelines.lane(),
      workspace,
      log: limitedTo(log, workspace),
      views: all,
      signal: left.signal,
      ...(limits && { limits }),
    });
    for await (const applied of work) if (applied.position >= endOf(seq)) break;
    left.abort();
  }
}

/** Builds all tables anew beside the existing ones, and swaps them in. */
export async function rebuildAll(databaseUrl: string, log: LogReader, workspaces?: readonly string[]): Promise<void> {
  const { signal } = new AbortController();
  const all = logsIn(log);
  const logs = workspaces === undefined ? all : { ...all, names: async () => workspaces };
  const done = await rebuild({ databaseUrl, logs, views: views({ textRows: false }), signal });
  if (!done) throw new Error("the rebuild ended before its swap");
}
