import { backUpLog } from "@tapedeck/shared/log/backup";
import { backupOf, openTokenStore } from "@tapedeck/shared/tokens/store";
import { bytesText } from "../../display/durations.ts";
import { newBackup } from "../../maintain/backup-folder.ts";
import { type BackupEnd, remoteMaintenance } from "../../maintain/remote.ts";
import { openThisMachine } from "../../maintain/this-machine.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type BackupOptions = { readonly data: string; readonly url?: string };

/** Copies the log of this machine's Tapedeck, or of another one by its gateway. */
export async function backUp(folder: string, options: BackupOptions, progressTo: ProgressTo = {}): Promise<void> {
  const { data, url } = options;
  const make = announceTapedeck("backup", options)
    ? remoteMaintenance(url).backUp
    : (take: Take) => backUpHere(data, take);
  await using backup = await newBackup(folder);
  using progress = new Progress({ what: "backup", unit: "bytes", ...progressTo });
  const { snapshot, tokens } = await make(async (piece) => {
    await backup.take(piece);
    progress.reached(progress.done + piece.byteLength);
  });
  await backup.finish(snapshot, tokens);
  progress[Symbol.dispose]();
  const { messages } = snapshot.state;
  console.log(`backed up ${messages} events to ${folder} (${bytesText(progress.done)})`);
}

type Take = (piece: Uint8Array) => Promise<void>;

async function backUpHere(data: string, take: Take): Promise<BackupEnd> {
  await using machine = await openThisMachine(data);
  const snapshot = await backUpLog(machine.nats, take);
  return { snapshot, tokens: backupOf(await (await openTokenStore(machine.nats)).read()) };
}
