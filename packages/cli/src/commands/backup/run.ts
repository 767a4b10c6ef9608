import { backUpLog } from "@tapedeck/shared/log/backup";
import { backupOf, openTokenStore } from "@tapedeck/shared/tokens/store";
import { CommandError } from "../../command-error.ts";
import { counted } from "../../display/counted.ts";
import { bytesText } from "../../display/durations.ts";
import { print } from "../../display/output.ts";
import { auditHere } from "../../maintain/audit-here.ts";
import { newBackup } from "../../maintain/backup-folder.ts";
import { dialNats, findHere, noServerOn } from "../../maintain/here.ts";
import { type BackupEnd, remoteMaintenance } from "../../maintain/remote.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import { Progress, type ProgressTo } from "../../progress.ts";

export type BackupOptions = { readonly data: string; readonly url?: string; readonly here?: boolean };

/** Copies the log of this machine's Tapedeck, of a NATS that the settings name, or of another Tapedeck by its gateway. A backup that fails leaves no files. */
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
  print(`backed up ${counted(messages, "message")} of the log to ${folder} (${bytesText(progress.done)})`);
}

type Take = (piece: Uint8Array) => Promise<void>;
type MakeBackup = (take: Take, signal: AbortSignal) => Promise<BackupEnd>;

/** At the NATS that `up` runs on a data folder, or at the one that the settings name. */
async function backUpHere(data: string, take: Take, signal: AbortSignal): Promise<BackupEnd> {
  const settings = await (await findHere(data)).nats();
  if (settings === undefined) throw noServerOn(data);
  await using stack = new AsyncDisposableStack();
  const nats = stack.adopt(await dialNats(settings), (connection) => connection.close());
  signal.throwIfAborted();
  await auditHere(nats, { action: "log.backed-up", about: {} });
  signal.addEventListener("abort", () => void nats.close());
  const snapshot = await backUpLog(nats, take);
  return { snapshot, tokens: backupOf(await (await openTokenStore(nats)).read()) };
}
