import { jetstreamManager } from "@nats-io/jetstream";
import type { ConnectedLog } from "@tapedeck/shared/log/connect-log";
import { epochOf } from "@tapedeck/shared/log/epoch";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { type LogReader, LogReplacedError, type ReadFrom } from "@tapedeck/shared/log/log";
import { everyOwnSubject, sourceOfSubject, streamOf, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { sourceParts } from "@tapedeck/shared/source";
import { startInterval, stopTimer } from "@tapedeck/shared/sync/timers";

/** The logs of all workspaces, as query reads them. */
export type WorkspaceLogs = {
  /** The workspaces that have a log. Rejects when NATS can't be asked. */
  names(): Promise<readonly string[]>;
  /**
   * Rejects as openLog does: where the workspace has no log, isLogMissing is true of the error.
   * @throws LogReplacedError when the log is another one than that of the connection
   */
  of(workspace: string): Promise<LogReader>;
  /** Calls `found` for workspaces that have a log, some of them again and again, until it is disposed. */
  watch(found: (workspace: string) => void): Disposable;
};

/** How often is asked which workspaces have a log. The first events of one are noticed at once. */
const askMs = 5_000;

/** The logs over this connection. Until each has a stream of its own, their readers leave out what is of others. */
export function logsOver({ nats, logs }: Pick<ConnectedLog, "nats" | "logs">): WorkspaceLogs {
  return {
    names: () => logs.names(),
    async of(workspace) {
      const { reader } = await logs.of(workspace);
      const info = await (await jetstreamManager(nats, { checkAPI: false })).streams.info(streamOf(workspace));
      if (epochOf(info) !== reader.epoch) throw new LogReplacedError(reader.epoch);
      return limitedTo(reader, workspace);
    },
    watch(found) {
      const subscription = nats.subscribe(everyOwnSubject, {
        callback: (error, { subject }) => {
          if (error === null) for (const workspace of workspaceIn(subject)) found(workspace);
        },
      });
      const ask = () =>
        logs.names().then(
          (all) => all.map(found),
          () => {}, // the next time will do
        );
      const timer = startInterval(() => void ask(), askMs).unref();
      return {
        [Symbol.dispose]: () => {
          stopTimer(timer);
          if (!nats.isClosed()) subscription.unsubscribe();
        },
      };
    },
  };
}

export function isLogMissing(error: unknown): boolean {
  const cause = error instanceof LogUnusableError ? error.cause : error;
  return cause instanceof Error && cause.name === "StreamNotFoundError";
}

function workspaceIn(subject: string): readonly string[] {
  const source = sourceOfSubject(subject);
  return source === undefined ? [] : [sourceParts(source).workspace];
}

/** Reads what is of the workspace where all is asked for. */
export function limitedTo(reader: LogReader, workspace: string): LogReader {
  const subjects = [workspaceFilter(workspace)];
  const limited = (from: ReadFrom) => (from.subjects.length === 0 ? { ...from, subjects } : from);
  return {
    ...reader,
    history: (from, until, signal) => reader.history(limited(from), until, signal),
    follow: (from, options) => reader.follow(limited(from), options),
  };
}
