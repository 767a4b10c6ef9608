import { jetstreamManager } from "@nats-io/jetstream";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { streamOf, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { WorkspaceLogs } from "@tapedeck/shared/log/workspace-logs";
import { watchWorkspaces } from "@tapedeck/shared/log/workspaces/watch-workspaces";
import { connect } from "nats";
import { openDatabase } from "../db/database.ts";
import { takeTables } from "../db/lock.ts";
import { migrate } from "../db/migrate.ts";
import { project } from "../projecting/project.ts";
import { logsOver } from "../projecting/workspace-logs.ts";
import { views } from "../views/views.ts";
import type { Stage } from "./stage.ts";

/** The logs of workspaces: each has an epoch and positions of its own from 1 on. */
export async function streams(on: Stage, workspaces: readonly string[]) {
  await using stack = new AsyncDisposableStack();
  const nats = stack.adopt(await connect({ servers: on.nats.url }), (nc) => nc.close());
  const jsm = await jetstreamManager(nats);
  await jsm.streams.update(streamOf("acme"), { subjects: [workspaceFilter("acme")] });
  const opened = new Map<string, Log>();
  const begin = async (workspace: string) => {
    opened.set(workspace, await openLog(nats, { workspace, timeoutMs: 20_000 }));
  };
  for (const workspace of workspaces) await begin(workspace);
  stack.defer(async () => {
    for (const log of opened.values()) await log[Symbol.asyncDispose]();
  });
  const open = (workspace: string) => openLog(nats, { workspace, create: false });
  const logs = stack.use(new WorkspaceLogs({ nats, open }));
  const watched = stack.use(await watchWorkspaces(nats, () => {}));
  const owned = stack.move();
  return {
    nats,
    begin,
    remove: async (workspace: string) => {
      await opened.get(workspace)?.[Symbol.asyncDispose]();
      await jsm.streams.delete(streamOf(workspace));
    },
    log: (workspace: string): Log => {
      const log = opened.get(workspace);
      if (log === undefined) throw new Error(`${workspace} has no log`);
      return log;
    },
    logs: logsOver({ nats, logs, workspaces: watched }),
    startQuery: () => on.startQuery(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Projects the logs of workspaces into another database, each to its end. */
export async function projectAlone(url: string, logs: ReadonlyMap<string, Log>): Promise<void> {
  await using database = openDatabase({ url, connections: 2 });
  await migrate(database);
  await using tables = await takeTables(database);
  for (const [workspace, { reader }] of logs) {
    const left = new AbortController();
    const { lastOffset } = await reader.bounds();
    const connection = tables.pipelines.lane();
    const parts = { connection, workspace, log: reader, views: views({ textRows: false }), signal: left.signal };
    for await (const { position } of project(parts)) if (position >= lastOffset) break;
    left.abort();
  }
}
