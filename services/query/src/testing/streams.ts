import { jetstreamManager } from "@nats-io/jetstream";
import type { ConnectedLog } from "@tapedeck/shared/log/connect-log";
import { type Log, newStream, openLog } from "@tapedeck/shared/log/jetstream";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { delay } from "@tapedeck/shared/sync/delay";
import { connect, type NatsConnection } from "nats";
import { openDatabase } from "../db/database.ts";
import { takeTables } from "../db/lock.ts";
import { migrate } from "../db/migrate.ts";
import { project } from "../projecting/project.ts";
import type { WorkspaceLogs } from "../projecting/workspace-logs.ts";
import { startQuery } from "../query.ts";
import { views } from "../views/views.ts";
import type { Stage } from "./stage.ts";

const prefix = "TAPEDECK_LOG_";

/** Workspaces with a stream each, so that each has an epoch and positions of its own from 1 on. */
export async function streams(on: Stage, workspaces: readonly string[]) {
  await using stack = new AsyncDisposableStack();
  const nats = stack.adopt(await connect({ servers: on.nats.url }), (nc) => nc.close());
  const jsm = await jetstreamManager(nats);
  // Two streams can't have the same subjects.
  await jsm.streams.update("TAPEDECK", { subjects: ["tapedeck.unused"] });
  const opened = new Map<string, Log>();
  const begin = async (workspace: string) => {
    const name = `${prefix}${workspace}`;
    await jsm.streams.add({ ...newStream(name, 1), subjects: [workspaceFilter(workspace)] });
    opened.set(workspace, await openLog(nats, { streamName: name, timeoutMs: 20_000 }));
  };
  for (const workspace of workspaces) await begin(workspace);
  stack.defer(async () => {
    for (const log of opened.values()) await log[Symbol.asyncDispose]();
  });
  const owned = stack.move();
  return {
    nats,
    begin,
    remove: async (workspace: string) => {
      await opened.get(workspace)?.[Symbol.asyncDispose]();
      await jsm.streams.delete(`${prefix}${workspace}`);
    },
    log: (workspace: string): Log => {
      const log = opened.get(workspace);
      if (log === undefined) throw new Error(`${workspace} has no log`);
      return log;
    },
    logs: logsOn(nats),
    startQuery: () => startQuery(on.config, silentLogger, ({ nats: own }: ConnectedLog) => logsOn(own)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function logsOn(nats: NatsConnection): WorkspaceLogs {
  const names = async () => {
    const jsm = await jetstreamManager(nats, { checkAPI: false });
    const found = (await Array.fromAsync(jsm.streams.names())).flat();
    return found.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  };
  return {
    names,
    of: async (workspace) => (await openLog(nats, { streamName: `${prefix}${workspace}`, create: false })).reader,
    watch(found) {
      const stop = new AbortController();
      const ask = async () => {
        for (; !stop.signal.aborted; await delay(200, stop.signal))
          await names()
            .then((all) => all.map(found))
            .catch(() => {});
      };
      void ask();
      return { [Symbol.dispose]: () => stop.abort() };
    },
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
