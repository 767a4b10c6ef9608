import { jetstreamManager } from "@nats-io/jetstream";
import { checkAgain } from "@tapedeck/shared/log/check-again";
import type { ConnectedLogs } from "@tapedeck/shared/log/connect-log";
import { epochOf } from "@tapedeck/shared/log/epoch";
import type { LogReader } from "@tapedeck/shared/log/log";
import { everyOwnSubject, sourceOfSubject, streamOf } from "@tapedeck/shared/log/subjects";
import { sourceParts } from "@tapedeck/shared/source";

/** The logs of the workspaces of this query, as it reads them. */
export type WorkspaceLogs = {
  /** Those that have a log. Rejects when NATS can't be asked. */
  names(): Promise<readonly string[]>;
  /** The log that is there now. Rejects as openLog does: where there is none, isLogMissing is true of the error. */
  of(workspace: string): Promise<LogReader>;
  /** Calls `found` for workspaces that have a log, some of them again and again, until it is disposed. */
  watch(found: (workspace: string) => void): Disposable;
  /** Whether the log with this epoch was removed with its workspace, or is being removed. */
  isRemoved(workspace: string, epoch: string): boolean;
  /** Calls `removed` for each workspace that is removed, until it is disposed. */
  watchRemoved(removed: (workspace: string) => void): Disposable;
};

/**
 * How often is asked which workspaces have a log. The first events of one are noticed at once, and so is a question about it;
 * a log without events, or a restored one, is found.
 */
const askTimes = { aloneMs: 60_000, inClusterMs: 5_000 } as const;

/** `isProjected`: the workspaces that are projected here; by default all. */
export function logsOver(
  { nats, logs, workspaces }: Omit<ConnectedLogs, keyof AsyncDisposable>,
  isProjected: (workspace: string) => boolean = () => true,
): WorkspaceLogs {
  const names = async () => (await logs.names()).filter(isProjected);
  const epochNow = async (workspace: string) => {
    const jsm = await jetstreamManager(nats, { checkAPI: false });
    const info = await jsm.streams.info(streamOf(workspace)).catch((error: Error) => {
      if (error.name !== "StreamNotFoundError") throw error;
      return undefined;
    });
    return info && epochOf(info);
  };
  return {
    names,
    async of(workspace) {
      const { reader } = await logs.of(workspace);
      if ((await epochNow(workspace)) === reader.epoch) return reader;
      await logs.forget(workspace, reader);
      return (await logs.of(workspace)).reader;
    },
    isRemoved: (workspace, epoch) => workspaces.removalOf(workspace)?.epochs.includes(epoch) === true,
    watchRemoved: (removed) =>
      workspaces.onRemoval(({ workspace, state }) => {
        if (state === "removing") removed(workspace);
      }),
    watch(found) {
      const ask = async () => {
        for (const workspace of await names()) found(workspace);
      };
      const asking = checkAgain(nats, ask, askTimes);
      const subscription = nats.subscribe(everyOwnSubject, {
        callback: (error, { subject }) => {
          if (error !== null) asking.isDeaf();
          else for (const workspace of workspaceIn(subject).filter(isProjected)) found(workspace);
        },
      });
      return {
        [Symbol.dispose]: () => {
          asking[Symbol.dispose]();
          if (!nats.isClosed()) subscription.unsubscribe();
        },
      };
    },
  };
}

function workspaceIn(subject: string): readonly string[] {
  const source = sourceOfSubject(subject);
  return source === undefined ? [] : [sourceParts(source).workspace];
}
