import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import type { Log } from "./jetstream.ts";
import { orNotReady } from "./reading/leader.ts";
import { everySubject, streamOf, workspaceOfStream } from "./subjects.ts";

/** The workspaces that have a log, in alphabetical order. Rejects with TapedeckError not_ready when NATS can't be asked. */
export async function logNames(nats: NatsConnection): Promise<readonly string[]> {
  const jsm = await jetstreamManager(nats, { timeout: 2_000, checkAPI: false });
  const streams = await orNotReady(Array.fromAsync(jsm.streams.names(everySubject)));
  return streams.flatMap((stream) => workspaceOfStream(stream) ?? []).toSorted();
}

/** The number of workspaces at most that are asked whether something is in them. */
const maxAsked = 50;

/** The workspaces in which something was recorded: a log that was only read is empty. */
export async function recordedNames(nats: NatsConnection): Promise<readonly string[]> {
  const jsm = await jetstreamManager(nats, { timeout: 2_000, checkAPI: false });
  const names = await logNames(nats);
  const asked = names.slice(0, maxAsked).map(async (workspace) => {
    const { state } = await orNotReady(jsm.streams.info(streamOf(workspace)));
    return state.last_seq > 0 ? [workspace] : [];
  });
  return [...(await Promise.all(asked)).flat(), ...names.slice(maxAsked)];
}

export type WorkspaceLogsOptions = {
  readonly nats: NatsConnection;
  /** Opens the log of a workspace. Rejects as openLog does. */
  readonly open: (workspace: string) => Promise<Log>;
};

/**
 * The logs of all workspaces, on one connection to NATS, which stays the caller's. Each is opened when it is first asked
 * for. One that nobody follows costs some memory, and nothing else.
 */
export class WorkspaceLogs implements AsyncDisposable {
  readonly #options: WorkspaceLogsOptions;
  readonly #opened = new Map<string, Promise<Log>>();
  readonly #replaced: Log[] = [];

  constructor(options: WorkspaceLogsOptions) {
    this.#options = options;
  }

  /** Rejects as openLog does; the next call tries again. The log is closed with this object, or when it is forgotten. */
  of(workspace: string): Promise<Log> {
    const known = this.#opened.get(workspace);
    if (known !== undefined) return known;
    const opening = this.#options.open(workspace);
    this.#opened.set(workspace, opening);
    opening.catch(() => this.#drop(workspace, opening));
    return opening;
  }

  /** This log was replaced or removed: the next `of` opens another one. Its readers keep it until they have ended. */
  async forget(workspace: string, log: Pick<Log, "epoch">): Promise<void> {
    const known = this.#opened.get(workspace);
    const opened = await known?.catch(() => undefined);
    if (known === undefined || opened?.epoch !== log.epoch || this.#opened.get(workspace) !== known) return;
    this.#opened.delete(workspace);
    this.#replaced.push(opened);
  }

  /** The workspaces that have a log, in alphabetical order. Rejects with TapedeckError not_ready when NATS can't be asked. */
  names(): Promise<readonly string[]> {
    return logNames(this.#options.nats);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const logs = await Promise.allSettled(this.#opened.values());
    this.#opened.clear();
    const open = logs.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    await Promise.all([...open, ...this.#replaced.splice(0)].map((log) => log[Symbol.asyncDispose]()));
  }

  #drop(workspace: string, opening: Promise<Log>): void {
    if (this.#opened.get(workspace) === opening) this.#opened.delete(workspace);
  }
}
