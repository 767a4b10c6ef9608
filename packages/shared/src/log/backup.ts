import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { Msg, NatsConnection } from "nats";
import { newInbox } from "../service/nats.ts";
import {
  epochKey,
  epochOf,
  type FormerEpoch,
  formerEpochsKey,
  formerEpochsOf,
  newEpoch,
  refusalOfFormat,
} from "./epoch.ts";
import { newStream } from "./jetstream.ts";
import { knownEnds } from "./known-ends.ts";
import type { Sequence } from "./offset.ts";
import { endsStream, streamOf } from "./subjects.ts";

/** NATS' description of a stream in a snapshot; kept beside the bytes, as `nats stream backup` does. */
export type Snapshot = { readonly config: StreamConfig; readonly state: StreamInfo["state"] };

export type Restored = {
  readonly epoch: string;
  readonly lastSeq: Sequence;
  readonly formerEpochs: readonly FormerEpoch[];
};

/** The input is not a backup of a log, or NATS refused; the message is one sentence for people. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

const chunkBytes = 128 * 1024;
const api = "$JS.API.STREAM";

/** How long NATS may be silent. */
const silentMs = 60_000;

/**
 * A snapshot of a workspace's log as NATS makes it, while it is written to: everything up to a moment. `take` gets the pieces in
 * order and may take its time. NATS is not asked to check the messages (`jsck`): it would read the whole log first, and
 * record nothing meanwhile. Ingest's own check finds damage (docs/operations.md#tapedecklogdamaged).
 * @throws BackupError
 */
export async function backUpLog(
  nc: NatsConnection,
  workspace: string,
  take: (piece: Uint8Array) => Promise<void>,
): Promise<Snapshot> {
  const name = streamOf(workspace);
  const inbox = newInbox(nc);
  const pieces = nc.subscribe(inbox, { timeout: silentMs });
  try {
    const request = { deliver_subject: inbox, no_consumers: true, chunk_size: chunkBytes };
    const { config, state } = await ask<Snapshot>(nc, `${api}.SNAPSHOT.${name}`, JSON.stringify(request));
    for await (const piece of pieces) {
      if (piece.data.length === 0) {
        if (piece.headers?.hasError) throw new BackupError(`NATS aborted the snapshot: ${piece.headers.description}.`);
        return { config, state };
      }
      await take(piece.data);
      piece.respond();
    }
    throw new BackupError("the connection to NATS was closed in the middle of the snapshot.");
  } finally {
    pieces.unsubscribe();
  }
}

/**
 * Creates the log of a workspace from a snapshot, where there is none. It is another log from its last event on: it gets its own
 * epoch, and positions of the old one stay valid as far as the backup reaches.
 * @throws BackupError
 */
export async function restoreLog(
  nc: NatsConnection,
  workspace: string,
  { config: { ...config }, state }: Snapshot,
  pieces: AsyncIterable<Uint8Array>,
): Promise<Restored> {
  const name = streamOf(workspace);
  const old = epochOf({ config });
  if (old === undefined || config.name !== name) throw new BackupError("this is a backup of something else.");
  const refusal = refusalOfFormat({ config });
  if (refusal !== undefined) throw new BackupError(refusal);
  const lastSeq = state.last_seq;
  const formerEpochs = [...formerEpochsOf({ config }), { epoch: old, lastSeq }];
  const epoch = newEpoch();
  const metadata = { ...config.metadata, [epochKey]: epoch, [formerEpochsKey]: JSON.stringify(formerEpochs) };
  const request = JSON.stringify({ config: { ...config, metadata }, state });
  const { deliver_subject } = await ask<{ deliver_subject: string }>(nc, `${api}.RESTORE.${name}`, request);
  for await (const piece of pieces) await send(nc, deliver_subject, piece);
  const made = await ask<StreamInfo>(nc, deliver_subject, "");
  if (made.state.last_seq !== lastSeq) {
    throw new BackupError(`the restored log ends at ${made.state.last_seq}, and not at ${lastSeq} as its backup says.`);
  }
  // Asks the server instead of trusting the request.
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const restored = epochOf(await jsm.streams.info(name));
  if (restored !== epoch) throw new BackupError("NATS did not give the restored log its new epoch.");
  return { epoch, lastSeq, formerEpochs };
}

/**
 * Continues with what is left of a log, under a new epoch, so that new events get positions that were never used: of one
 * that has lost its end, or that nats-server no longer serves because the stream's description is damaged. Then the messages
 * are still there, and positions of the epochs that are known stay valid as far as they go. Nothing may be writing meanwhile.
 * @throws BackupError when there is no log, and nothing is known of one
 */
export async function renewEpoch(nc: NatsConnection, workspace: string): Promise<Restored> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const name = streamOf(workspace);
  const { info, former } = await streamToRenew(jsm, workspace);
  const old = epochOf(info);
  if (old === undefined) throw new BackupError(`the stream ${name} was not made by Tapedeck.`);
  const lastSeq = info.state.last_seq;
  const formerEpochs = [...formerEpochsOf(info), ...former];
  const epoch = newEpoch();
  const metadata = { ...info.config.metadata, [epochKey]: epoch, [formerEpochsKey]: JSON.stringify(formerEpochs) };
  // Also of a stream that was added just now: over a damaged description, only a change is written to the disk.
  await jsm.streams.update(name, { metadata });
  return { epoch, lastSeq, formerEpochs };
}

/**
 * The stream, and which epochs end with it. One that is added over the messages of a lost one continues these, and nothing
 * was written to it. One that has taken the place of another log has nothing of that.
 */
async function streamToRenew(
  jsm: JetStreamManager,
  workspace: string,
): Promise<{ readonly info: StreamInfo; readonly former: readonly FormerEpoch[] }> {
  const known = await knownEnds(jsm, workspace);
  try {
    const info = await jsm.streams.info(streamOf(workspace));
    const epochs = [epochOf(info), ...formerEpochsOf(info).map(({ epoch }) => epoch)];
    const others = known.filter(({ epoch }) => !epochs.includes(epoch)).map(({ epoch }) => ({ epoch, lastSeq: 0 }));
    return { info, former: [...others, { epoch: epochOf(info) ?? "", lastSeq: info.state.last_seq }] };
  } catch (cause) {
    if ((cause as Error).name !== "StreamNotFoundError" || known.length === 0) {
      throw new BackupError("there is no log here.", { cause });
    }
    const { num_replicas } = (await jsm.streams.info(endsStream)).config;
    const info = await jsm.streams.add(newStream(workspace, { replicas: num_replicas }));
    const lastSeq = info.state.last_seq;
    const [newest, ...earlier] = known.toSorted((one, other) => other.seq - one.seq);
    const former = earlier.map(({ epoch, seq }) => ({ epoch, lastSeq: Math.min(seq, lastSeq) }));
    return { info, former: [...former, { epoch: newest?.epoch ?? "", lastSeq }] };
  }
}

async function send(nc: NatsConnection, subject: string, piece: Uint8Array): Promise<void> {
  const { data } = await request(nc, subject, piece);
  if (data.length > 0) throw refusalIn(data) ?? new BackupError("NATS refused a piece of the backup.");
}

async function ask<Answer>(nc: NatsConnection, subject: string, body: string): Promise<Answer> {
  const { data } = await request(nc, subject, body);
  const refusal = refusalIn(data);
  if (refusal !== undefined) throw refusal;
  return JSON.parse(new TextDecoder().decode(data)) as Answer;
}

async function request(nc: NatsConnection, subject: string, body: string | Uint8Array): Promise<Msg> {
  try {
    return await nc.request(subject, body, { timeout: silentMs });
  } catch (cause) {
    throw new BackupError(`NATS did not answer: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause });
  }
}

function refusalIn(data: Uint8Array): BackupError | undefined {
  const text = new TextDecoder().decode(data);
  if (!text.includes('"error"')) return undefined;
  const { error } = JSON.parse(text) as { error?: { description: string; code: number; err_code: number } };
  return error && new BackupError(`NATS refuses: ${error.description}.`, { cause: new JetStreamApiError(error) });
}
