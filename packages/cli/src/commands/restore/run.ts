import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { backUpLog, type Restored, restoreLog, type Snapshot } from "@tapedeck/shared/log/backup";
import { endOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { endsStream, streamName } from "@tapedeck/shared/log/subjects";
import { openTokenStore, type TokenBackup } from "@tapedeck/shared/tokens/store";
import type { NatsConnection } from "nats";
import { CommandError } from "../../command-error.ts";
import { counted } from "../../display/counted.ts";
import { print } from "../../display/output.ts";
import { auditDone, auditHere } from "../../maintain/audit-here.ts";
import { newBackup, readBackup } from "../../maintain/backup-folder.ts";
import { checkForgettable, forgetTables } from "../../maintain/forget-tables.ts";
import { openStoppedMachine } from "../../maintain/stopped-machine.ts";
import { announceLocalOnly } from "../../maintain/which-tapedeck.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type RestoreOptions = {
  readonly data: string;
  readonly replace?: boolean;
  /** false with --no-tokens. */
  readonly tokens?: boolean;
};

/** Puts the log of a backup in place of the one that is there; what was there is kept as a backup, too. */
export async function restore(
  folder: string,
  { data, replace = false, tokens: withTokens = true }: RestoreOptions,
  progressTo: ProgressTo = {},
): Promise<void> {
  announceLocalOnly("restore", data);
  const { snapshot, pieces, tokens } = await readBackup(folder);
  await using machine = await openStoppedMachine(data);
  const { nats } = machine;
  await checkForgettable(machine.databaseUrl);
  const replaced = await makeRoom(nats, replace, join(machine.dataDir, "replaced", fileTime()));
  const { num_replicas = snapshot.config.num_replicas } = replaced ?? {};
  const fitting = { ...snapshot, config: { ...snapshot.config, num_replicas } };
  const restored = await restoreLog(nats, fitting, withProgress(pieces(), progressTo));
  await forgetEnds(nats);
  const forgotten = await forgetTables(nats, machine.databaseUrl);
  printResult(snapshot, restored);
  if (replaced !== undefined && replaced.folder !== undefined) print(`the previous log is kept in ${replaced.folder}`);
  if (forgotten) print("the tables are ahead of the log: they are rebuilt at the next start");
  if (tokens !== undefined && withTokens) await restoreTokens(nats, tokens);
  const about = {
    epoch: restored.epoch,
    messages: snapshot.state.messages,
    ...(replaced?.folder && { kept: replaced.folder }),
  };
  await auditDone(auditHere(nats, { action: "log.restored", about }));
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

function printResult({ state }: Snapshot, { epoch, lastSeq, formerEpochs }: Restored): void {
  const last = formerEpochs.at(-1);
  print(`restored ${counted(state.messages, "message")} of the log; the log continues as epoch ${epoch}`);
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

type ReplacedLog = {
  /** Undefined where there was nothing in the log. */
  readonly folder: string | undefined;
  readonly num_replicas: number;
};

/** What of the log that was there is kept; undefined where there was none. */
async function makeRoom(nats: NatsConnection, replace: boolean, keepIn: string): Promise<ReplacedLog | undefined> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  const info = await jsm.streams.info(streamName).catch((error: Error) => {
    if (error.name === "StreamNotFoundError") return undefined;
    throw error;
  });
  if (info === undefined) return undefined;
  const { messages, last_seq } = info.state;
  if (last_seq > 0 && !replace) {
    throw new CommandError(
      `a log exists already (${counted(messages, "message")}): add --replace to replace it (it is kept as a backup).`,
    );
  }
  if (last_seq > 0) {
    await using backup = await newBackup(keepIn);
    await backup.finish(await backUpLog(nats, backup.take));
  }
  await jsm.streams.delete(streamName);
  return { folder: last_seq > 0 ? keepIn : undefined, num_replicas: info.config.num_replicas };
}

/** How far sources had come in the log that was there is no matter of this one. */
async function forgetEnds(nats: NatsConnection): Promise<void> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  await jsm.streams.delete(endsStream).catch((error: Error) => {
    if (error.name !== "StreamNotFoundError" && !/not found/.test(error.message)) throw error;
  });
}
