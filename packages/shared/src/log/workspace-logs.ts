import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { sourceParts } from "../source.ts";
import { infoOfLeader } from "./cluster/leader-info.ts";
import type { Log } from "./jetstream.ts";
import { orNotReady } from "./reading/leader.ts";
import { everySubject, sourceOfSubject, streamOf } from "./subjects.ts";

export type WorkspaceLogsOptions = {
  readonly nats: NatsConnection;
  /** Opens the log in this stream. Rejects as openLog does. */
  readonly open: (streamName: string) => Promise<Log>;
};

/** The logs of all workspaces, on one connection to NATS, which stays the caller's. Each is opened when it is first asked for. */
export class WorkspaceLogs implements AsyncDisposable {
  readonly #options: WorkspaceLogsOptions;
  readonly #opened = new Map<string, Promise<Log>>();
  readonly #replaced: Log[] = [];

  constructor(options: WorkspaceLogsOptions) {
    this.#options = options;
  }

  /** Rejects as openLog does; the next call tries again. The log is closed with this object. */
  of(workspace: string): Promise<Log> {
    const stream = streamOf(workspace);
    const known = this.#opened.get(stream);
    if (known !== undefined) return known;
    const opening = this.#options.open(stream);
    this.#opened.set(stream, opening);
    opening.catch(() => this.#opened.delete(stream));
    return opening;
  }

  /** This log was replaced by another one: the next `of` opens that. Its readers keep it until they have ended. */
  async forget(workspace: string, log: Log): Promise<void> {
    const stream = streamOf(workspace);
    const known = this.#opened.get(stream);
    if ((await known?.catch(() => undefined)) !== log || this.#opened.get(stream) !== known) return;
    this.#opened.delete(stream);
    this.#replaced.push(log);
  }

  /** The workspaces that have a log, in alphabetical order. Rejects with TapedeckError not_ready when NATS can't be asked. */
  async names(): Promise<readonly string[]> {
    const jsm = await jetstreamManager(this.#options.nats, { timeout: 2_000, checkAPI: false });
    const info = infoOfLeader(jsm, streamOf(""), { subjects_filter: everySubject });
    const { state } = await orNotReady(info);
    const sources = Object.keys(state.subjects ?? {}).flatMap((subject) => sourceOfSubject(subject) ?? []);
    return [...new Set(sources.map((source) => sourceParts(source).workspace))].toSorted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const logs = await Promise.allSettled(this.#opened.values());
    this.#opened.clear();
    const open = logs.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    await Promise.all([...open, ...this.#replaced.splice(0)].map((log) => log[Symbol.asyncDispose]()));
  }
}
