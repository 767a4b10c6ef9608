import { backUpLog } from "@tapedeck/shared/log/backup";
import { backupOf, openTokenStore } from "@tapedeck/shared/tokens/store";
import { CommandError } from "../../command-error.ts";
import { counted } from "../../display/counted.ts";
import { bytesText } from "../../display/durations.ts";
import { auditHere } from "../../maintain/audit-here.ts";
import { newBackup } from "../../maintain/backup-folder.ts";
import { type BackupEnd, remoteMaintenance } from "../../maintain/remote.ts";
import { openThisMachine } from "../../maintain/this-machine.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type BackupOptions = { readonly data: string; readonly url?: string; readonly here?: boolean };

/** Copies the log of this machine's Tapedeck, or of another one by its gateway. A backup that fails leaves no files. */
export async function backUp(folder: string, options: BackupOptions, progressTo: ProgressTo = {}): Promise<void> {
  const { data, url } = options;
  const make: MakeBackup = announceTapedeck("backup", options)
    ? remoteMaintenance(url).backUp
    : (take, signal) => backUpHere(data, take, signal);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  await using backup = await newBackup(folder);
  using progress = new Progress({ what: "backup", unit: "bytes", ...progressTo });
  const take = async (piece: Uint8Array) => {
    await backup.take(piece);
    progress.reached(progress.done + piece.byteLength);
  };
  const { snapshot, tokens } = await make(take, stop.signal).catch((error: unknown) => {
    throw stop.signal.aborted ? new CommandError("stopped: nothing was backed up.") : error;
  });
  await backup.finish(snapshot, tokens);
  progress[Symbol.dispose]();
  const { messages } = snapshot.state;
  console.log(`backed up ${counted(messages, "event")} to ${folder} (${bytesText(progress.done)})`);
}

type Take = (piece: Uint8Array) => Promise<void>;
type MakeBackup = (take: Take, signal: AbortSignal) => Promise<BackupEnd>;

async function backUpHere(data: string, take: Take, signal: AbortSignal): Promise<BackupEnd> {
  await using machine = await openThisMachine(data);
  signal.throwIfAborted();
  await auditHere(machine.nats, { action: "log.backed-up", about: {} });
  // NATS may check a long stream for a minute before it sends something.
  signal.addEventListener("abort", () => void machine.nats.close());
  const snapshot = await backUpLog(machine.nats, take);
  return { snapshot, tokens: backupOf(await (await openTokenStore(machine.nats)).read()) };
}
