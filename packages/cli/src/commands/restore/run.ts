import { join } from "node:path";
import { jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import { backUpLog, type Restored, restoreLog, type Snapshot } from "@tapedeck/shared/log/backup";
import { endOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { endSubjects, endsStream, streamOf } from "@tapedeck/shared/log/subjects";
import { SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { namePart } from "@tapedeck/shared/source";
import { backupOf, openTokenStore, type TokenBackup } from "@tapedeck/shared/tokens/store";
import type { NatsConnection } from "nats";
import { CommandError } from "../../command-error.ts";
import { counted } from "../../display/counted.ts";
import { print } from "../../display/output.ts";
import { auditDone, auditHere } from "../../maintain/audit-here.ts";
import { type LogBackup, newBackup, readBackup } from "../../maintain/backup-folder.ts";
import { checkForgettable, forgetTables } from "../../maintain/forget-tables.ts";
import { openStoppedMachine } from "../../maintain/stopped-machine.ts";
import { announceLocalOnly } from "../../maintain/which-tapedeck.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type RestoreOptions = {
  readonly data: string;
  readonly workspace?: string;
  readonly replace?: boolean;
  /** false with --no-tokens. */
  readonly tokens?: boolean;
};

/** Puts the logs of a backup in place of those that are there; what was there is kept as a backup, too. */
export async function restore(
  folder: string,
  { data, workspace, replace = false, tokens: withTokens = true }: RestoreOptions,
  progressTo: ProgressTo = {},
): Promise<void> {
  announceLocalOnly("restore", data);
  const { logs, tokens, sinks } = await readBackup(folder);
  const wanted = workspace === undefined ? logs : logs.filter((log) => log.workspace === namePart(workspace));
  if (wanted.length === 0) {
    const names = logs.map((log) => log.workspace).join(", ");
    throw new CommandError(`the backup in ${folder} has nothing of the workspace "${workspace}", but: ${names}.`);
  }
  await using machine = await openStoppedMachine(data);
  const { nats } = machine;
  await checkForgettable(machine.databaseUrl);
  const keepIn = join(machine.dataDir, "replaced", fileTime());
  // All of them first: a restore that is refused changes nothing.
  if (!replace) await Promise.all(wanted.map((log) => refuseToReplace(nats, log.workspace)));
  await using kept = new KeptLogs(nats, keepIn);
  const epochs = new Map<string, string>();
  for (const log of wanted) epochs.set(log.workspace, await restoreOne(nats, log, kept, progressTo));
  const forgotten = await forgetTables(nats, machine.databaseUrl);
  const keptFolder = await kept.finish();
  if (keptFolder !== undefined) print(`what was there is kept in ${keptFolder}`);
  if (forgotten) print("the tables are ahead of the log: they are rebuilt at the next start");
  if (tokens !== undefined && withTokens) await restoreTokens(nats, tokens);
  const restoredSinks = await new SinkStore(nats).putBack(sinks, (name) => epochs.has(name));
  if (restoredSinks > 0) print(`restored ${counted(restoredSinks, "sink")}`);
  for (const { workspace: name, snapshot } of wanted) {
    const { messages } = snapshot.state;
    const about = { epoch: epochs.get(name) ?? "", messages, ...(keptFolder && { kept: keptFolder }) };
    await auditDone(auditHere(nats, { action: "log.restored", workspace: name, about }));
  }
}

/** Resolves with the epoch under which the log continues. */
async function restoreOne(
  nats: NatsConnection,
  { workspace, snapshot, pieces }: LogBackup,
  kept: KeptLogs,
  progressTo: ProgressTo,
): Promise<string> {
  const { num_replicas = snapshot.config.num_replicas } = (await kept.take(workspace)) ?? {};
  const fitting = { ...snapshot, config: { ...snapshot.config, num_replicas } };
  const restored = await restoreLog(nats, workspace, fitting, withProgress(pieces(), progressTo));
  await forgetEnds(nats, workspace);
  printResult(workspace, snapshot, restored);
  return restored.epoch;
}

async function restoreTokens(nats: NatsConnection, tokens: TokenBackup): Promise<void> {
  const { added, stayRevoked } = await (await openTokenStore(nats)).putBack(tokens);
  if (added > 0) {
    print(
      `restored ${counted(added, "token")}; a token that was revoked after the backup is valid again if this NATS has no record of that: see \`tapedeck token list\``,
    );
  }
  if (stayRevoked > 0) {
    const [have, stay] = stayRevoked === 1 ? ["has", "stays"] : ["have", "stay"];
    print(`${counted(stayRevoked, "token")} of the backup ${have} been revoked since, and ${stay} revoked`);
  }
}

function printResult(workspace: string, { state }: Snapshot, { epoch, lastSeq, formerEpochs }: Restored): void {
  const last = formerEpochs.at(-1);
  print(
    `restored ${counted(state.messages, "message")} of the workspace "${workspace}"; its log continues as epoch ${epoch}`,
  );
  if (last === undefined) return;
  const end = formatPosition({ epoch: last.epoch, offset: endOf(lastSeq) });
  print(`positions up to ${end} remain valid; later ones of epoch ${last.epoch} are refused`);
}

const fileTime = () => new Date().toISOString().replace(/[:.]/g, "-");

/** While they are taken, how much it was. */
async function* withProgress(
  pieces: AsyncIterable<Uint8Array>,
  progressTo: ProgressTo,
): AsyncGenerator<Uint8Array, void> {
  using progress = new Progress({ what: "restore", unit: "bytes", ...progressTo });
  for await (const piece of pieces) {
    progress.reached(progress.done + piece.length);
    yield piece;
  }
}

/** @throws CommandError where the workspace has a log */
async function refuseToReplace(nats: NatsConnection, workspace: string): Promise<void> {
  const { messages = 0, last_seq = 0 } = (await infoOf(nats, workspace))?.state ?? {};
  if (last_seq === 0) return;
  throw new CommandError(
    `a log of the workspace "${workspace}" exists already (${counted(messages, "message")}): add --replace to replace it (it is kept as a backup).`,
  );
}

async function infoOf(nats: NatsConnection, workspace: string): Promise<StreamInfo | undefined> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  return jsm.streams.info(streamOf(workspace)).catch((error: Error) => {
    if (error.name === "StreamNotFoundError") return undefined;
    throw error;
  });
}

/** Removes logs, and keeps what they had as a backup. */
class KeptLogs implements AsyncDisposable {
  readonly #nats: NatsConnection;
  readonly #folder: string;
  #backup: Awaited<ReturnType<typeof newBackup>> | undefined;

  constructor(nats: NatsConnection, folder: string) {
    this.#nats = nats;
    this.#folder = folder;
  }

  /** Undefined where there was no log. */
  async take(workspace: string): Promise<{ readonly num_replicas: number } | undefined> {
    const info = await infoOf(this.#nats, workspace);
    if (info === undefined) return undefined;
    if (info.state.last_seq > 0) {
      this.#backup ??= await newBackup(this.#folder);
      await this.#backup.begin(workspace);
      await this.#backup.end(await backUpLog(this.#nats, workspace, this.#backup.take));
    }
    const jsm = await jetstreamManager(this.#nats, { checkAPI: false });
    await jsm.streams.delete(streamOf(workspace));
    return { num_replicas: info.config.num_replicas };
  }

  /** The folder; undefined where there was nothing to keep. */
  async finish(): Promise<string | undefined> {
    if (this.#backup === undefined) return undefined;
    const tokens = backupOf(await (await openTokenStore(this.#nats)).read());
    await this.#backup.finish({ tokens, sinks: await new SinkStore(this.#nats).backUp() });
    return this.#folder;
  }

  /** What was removed from NATS stays, whatever fails. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.finish();
    await this.#backup?.[Symbol.asyncDispose]();
  }
}

/** How far sources had come in the log that was there is no matter of this one. */
async function forgetEnds(nats: NatsConnection, workspace: string): Promise<void> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  await jsm.streams.purge(endsStream, { filter: endSubjects(workspace).all }).catch((error: Error) => {
    if (error.name !== "StreamNotFoundError" && !/not found/.test(error.message)) throw error;
  });
}
