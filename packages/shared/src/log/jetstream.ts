import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { backoff, delay } from "../sync/delay.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { isForbidden, raiseReplicas } from "./cluster/replicas.ts";
import { epochKey, epochOf, formatKey, formerEpochsOf, logFormat, newEpoch, refusalOfFormat } from "./epoch.ts";
import type { ErasedSessions } from "./erasures/erased-sessions.ts";
import { type KnownEnd, knownEnds } from "./known-ends.ts";
import type { RingLimits } from "./live/ring.ts";
import type { Gathering } from "./live/tail.ts";
import type { LogReader, LogSurvey, LogWriter } from "./log.ts";
import { endOf } from "./offset.ts";
import { formatPosition } from "./position.ts";
import { type JetstreamReader, jetstreamReader } from "./reading/jetstream-reader.ts";
import { everySubject, streamOf, workspaceFilter } from "./subjects.ts";
import { jetstreamWriter, largestMessageBytes } from "./writing/jetstream-writer.ts";

/** The log can't be used as it is; the message is one sentence for people. */
export class LogUnusableError extends Error {
  override readonly name = "LogUnusableError";
}

/** The log can't be opened now: its servers elect a leader, say, or are too busy to answer in time. */
export class LogNotReadyError extends Error {
  override readonly name = "LogNotReadyError";
}

/** How the log is opened. */
export type OpenLogOptions = {
  readonly workspace: string;
  /** Create the log if it is missing. Default true. */
  readonly create?: boolean;
  /** A stream that has fewer gets this many. Default 1. */
  readonly replicas?: number;
  /** The tags that a server must have to keep a stream that is created. Default none. */
  readonly placement?: readonly string[];
  /** How long one request may take before its outcome counts as unknown. Default 2,000. */
  readonly timeoutMs?: number;
  /** How long to wait for a JetStream that is not ready yet, as after a start. Default 10,000. */
  readonly waitMs?: number;
  /** True when the caller knows that the server syncs every message to disk: a server can't be asked. */
  readonly syncKnown?: boolean;
  /** Lets so many pulls of history run at once; the rest wait their turn. Default 256 for this log alone. */
  readonly historyReaders?: Semaphore;
  /** How many of the newest events the shared tail keeps. Default 4,096 events and 32 MiB. */
  readonly ring?: RingLimits;
  /** Default: each message is followed at once. */
  readonly gathering?: Gathering | undefined;
  /** Sessions that its readers leave out. */
  readonly erased?: ErasedSessions;
  readonly warn?: (message: string, fields?: Readonly<Record<string, unknown>>) => void;
};

/** The open log: its reader, its writer and its maintenance. */
export type Log = AsyncDisposable & {
  readonly epoch: string;
  readonly writer: LogWriter;
  readonly reader: LogReader & LogSurvey;
  readonly stored: JetstreamReader["stored"];
};

/**
 * A workspace has no log, although events were recorded in it. The nats-server serves no stream whose description (`meta.inf`)
 * it can't read, and puts a new stream of the same name over the messages of the old one.
 */
export class LogLostError extends LogUnusableError {
  constructor(workspace: string, { epoch, seq }: KnownEnd, cause: unknown) {
    const last = formatPosition({ epoch, offset: endOf(seq) });
    super(
      `the nats-server has no log of the workspace "${workspace}" (the stream ${streamOf(workspace)}), but events up to position ${last} were recorded in it: its data are damaged or were deleted. Bring its files back (such as meta.inf) and start it again, restore a backup with \`tapedeck restore\`, or continue with what is left, under new positions, with \`tapedeck new-epoch\`.`,
      { cause },
    );
  }
}

const streamExists = 10058;
const noJetStream = 10039;
/** Too few servers of the cluster are there for the replicas. */
const noPeers = 10005;

/**
 * Opens the log of a workspace on a NATS connection, and creates it if it is missing. Processes that create it at the same time agree
 * on one epoch. Disposing ends every follow; the connection stays the caller's.
 * @throws LogUnusableError when the server is too old or without JetStream, or the stream is missing, not Tapedeck's, or
 * of another format; LogNotReadyError when no server answers for it in time
 */
export async function openLog(nc: NatsConnection, options: OpenLogOptions): Promise<Log> {
  const { workspace, timeoutMs = 2_000, warn = () => {} } = options;
  const streamName = streamOf(workspace);
  refuseOldServer(nc);
  const jsm = await jetstreamManager(nc, { timeout: timeoutMs, checkAPI: false });
  const info = await whenReady(options.waitMs ?? 10_000, async () =>
    raiseReplicas(jsm, await streamInfo(jsm, options), options.replicas ?? 1),
  ).catch((cause) => {
    throw refusalOf(cause, `the stream ${streamName}`, nc);
  });
  const epoch = checkedEpoch(info, streamName);
  warnOfServer(nc, options);
  const reader = jetstreamReader({
    nc,
    jsm,
    streamName,
    epoch,
    formerEpochs: formerEpochsOf(info),
    info,
    timeoutMs,
    warn,
    historyReaders: options.historyReaders ?? new Semaphore(256),
    ...(options.ring && { limits: options.ring }),
    gathering: options.gathering,
    erased: options.erased,
  });
  return {
    epoch,
    reader,
    stored: reader.stored,
    writer: jetstreamWriter({ nc, jsm, streamName, timeoutMs }),
    [Symbol.asyncDispose]: () => reader.close(),
  };
}

/** The stream that an earlier Tapedeck kept all workspaces in. */
const oneLog = "TAPEDECK";
const beforeWorkspaces =
  "an earlier Tapedeck recorded here, in one log for all workspaces: `tapedeck export` the sessions with that version, start this one with a new data folder (or another NATS), and `tapedeck import` them.";

/** What of the logs' server is asked before any of them is opened. */
export type LogServerOptions = Pick<OpenLogOptions, "timeoutMs" | "waitMs" | "syncKnown" | "warn">;

/**
 * Waits until the logs of this server can be opened.
 * @throws LogUnusableError when the server is too old or without JetStream, or has the one log that Tapedeck kept before it
 * kept one for each workspace; LogNotReadyError when none answers in time
 */
export async function reachLogs(nc: NatsConnection, options: LogServerOptions = {}): Promise<void> {
  refuseOldServer(nc);
  const jsm = await jetstreamManager(nc, { timeout: options.timeoutMs ?? 2_000, checkAPI: false });
  const names = () => Array.fromAsync(jsm.streams.names(everySubject));
  const streams = await whenReady(options.waitMs ?? 10_000, names).catch((cause) => {
    throw refusalOf(cause, "the logs", nc);
  });
  if (streams.includes(oneLog)) throw new LogUnusableError(beforeWorkspaces);
  warnOfServer(nc, options);
}

function warnOfServer(nc: NatsConnection, { syncKnown, warn = () => {} }: LogServerOptions): void {
  if (!syncKnown) {
    warn(
      "can't tell whether this nats-server syncs every message to disk: set `jetstream { sync_interval: always }` in its configuration",
    );
  }
  if ((nc.info?.max_payload ?? 0) < largestMessageBytes) {
    warn(
      `events above ${nc.info?.max_payload} bytes won't fit: set \`max_payload: 8MB\` in the nats-server's configuration`,
    );
  }
}

function refuseOldServer(nc: NatsConnection): void {
  const version = nc.info?.version ?? "";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 2 || (major === 2 && minor >= 12)) return;
  throw new LogUnusableError(`nats-server ${version} is too old for Tapedeck: install 2.12 or newer.`);
}

/** Asks before it creates: not every service's user may create the log. */
async function streamInfo(jsm: JetStreamManager, options: OpenLogOptions): Promise<StreamInfo> {
  const { workspace } = options;
  const name = streamOf(workspace);
  try {
    return await jsm.streams.info(name);
  } catch (cause) {
    if (options.create === false || !isNotFound(cause)) throw cause;
    const [lost] = await knownEnds(jsm, workspace);
    if (lost !== undefined) throw new LogLostError(workspace, lost, cause);
    return (await createStream(jsm, options)) ?? (await madeElsewhere(jsm, name));
  }
}

/** The servers of a cluster may say for a moment both that it exists and that there is none. */
async function madeElsewhere(jsm: JetStreamManager, name: string): Promise<StreamInfo> {
  try {
    return await jsm.streams.info(name);
  } catch (cause) {
    throw isNotFound(cause) ? new LogNotReadyError(`the stream ${name} is being created`, { cause }) : cause;
  }
}

/** Undefined if another process has created it, maybe a moment ago. */
async function createStream(
  jsm: JetStreamManager,
  { workspace, replicas = 1, placement }: OpenLogOptions,
): Promise<StreamInfo | undefined> {
  try {
    return await jsm.streams.add(newStream(workspace, { replicas, placement }));
  } catch (cause) {
    if (codeOf(cause) === streamExists) return undefined;
    if (isForbidden(cause)) throw new LogMissingError(streamOf(workspace), cause);
    throw cause;
  }
}

/** The stream of a workspace's log that begins. */
export function newStream(
  workspace: string,
  { replicas, placement = [] }: { readonly replicas: number; readonly placement?: readonly string[] | undefined },
): Partial<StreamConfig> & { name: string } {
  return {
    name: streamOf(workspace),
    subjects: [workspaceFilter(workspace)],
    storage: "file",
    num_replicas: replicas,
    ...(placement.length > 0 && { placement: { cluster: "", tags: [...placement] } }),
    allow_direct: true,
    allow_msg_ttl: true,
    metadata: { [epochKey]: newEpoch(), [formatKey]: logFormat },
  };
}

/** The log does not exist, and this user may not create it: it is there once ingest has started. */
class LogMissingError extends Error {
  override readonly name = "LogMissingError";
  constructor(stream: string, cause: unknown) {
    super(`there is no stream ${stream} on this nats-server yet, and this user may not create it: ingest creates it`, {
      cause,
    });
  }
}

/** A server that has just started answers late, not at all, or reports that JetStream is not ready. */
async function whenReady<T>(waitMs: number, ask: () => Promise<T>): Promise<T> {
  const end = performance.now() + waitMs;
  const retry = backoff(50, 500);
  for (;;) {
    try {
      return await ask();
    } catch (cause) {
      const { name } = cause as Error;
      const settled =
        ["StreamNotFoundError", "ClosedConnectionError", "LogMissingError"].includes(name) ||
        isForbidden(cause) ||
        codeOf(cause) === noJetStream ||
        cause instanceof LogUnusableError;
      if (settled || performance.now() > end) throw cause;
      await delay(retry.next());
    }
  }
}

function checkedEpoch(info: StreamInfo, name: string): string {
  const { config } = info;
  const epoch = epochOf(info);
  if (epoch === undefined) {
    throw new LogUnusableError(
      `the stream ${name} on this nats-server was not made by Tapedeck: it has no ${epochKey}.`,
    );
  }
  const refusal = refusalOfFormat(info);
  if (refusal !== undefined) throw new LogUnusableError(refusal);
  for (const option of ["allow_direct", "allow_msg_ttl"] as const) {
    if (!config[option]) throw new LogUnusableError(`the stream ${name} has ${option} switched off: switch it on.`);
  }
  return epoch;
}

/** What an opening rejects with: an error other than LogUnusableError may be gone at the next try. */
function refusalOf(cause: unknown, what: string, nc: NatsConnection): Error {
  const { message } = cause as Error;
  // The one mends by itself, and the other has its sentence.
  if (cause instanceof LogMissingError || cause instanceof LogUnusableError) return cause;
  if (isForbidden(cause)) {
    return new LogUnusableError(
      `this user of the nats-server may not open the log (${message}): give it the permissions of infra/nats/tapedeck-users.conf.`,
      { cause },
    );
  }
  if (isNotFound(cause)) {
    return new LogUnusableError(`${what} is not on this nats-server yet.`, { cause });
  }
  if (isWithoutJetStream(cause, nc)) {
    return new LogUnusableError("this nats-server runs without JetStream: start it with a `jetstream` block.", {
      cause,
    });
  }
  const text = `${what} can't be opened: ${message}.`;
  return isRefusal(cause) ? new LogUnusableError(text, { cause }) : new LogNotReadyError(text, { cause });
}

/** Nobody answers either where the servers of a cluster that have JetStream are away. */
function isWithoutJetStream(cause: unknown, { info }: NatsConnection): boolean {
  if (codeOf(cause) === noJetStream) return true;
  const isNotEnabled = ["JetStreamNotEnabled", "JetStreamNotEnabledError"].includes((cause as Error).name);
  return isNotEnabled && info?.jetstream !== true && info?.cluster === undefined;
}

/** The server has answered, and not that it is not ready: as one that is busy, starts, or elects a leader. */
function isRefusal(cause: unknown): boolean {
  return cause instanceof JetStreamApiError && cause.apiError().code !== 503 && cause.code !== noPeers;
}

/** Whether a log could not be opened because the workspace has none. */
export function isLogMissing(error: unknown): boolean {
  return error instanceof LogUnusableError && !(error instanceof LogLostError) && isNotFound(error.cause);
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && error.name === "StreamNotFoundError";
}

function codeOf(error: unknown): number | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "number" ? error.code : undefined;
}
