import { backUpLog } from "@tapedeck/shared/log/backup";
import { logNames } from "@tapedeck/shared/log/workspace-logs";
import { SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { namePart } from "@tapedeck/shared/source";
import { backupOf, openTokenStore } from "@tapedeck/shared/tokens/store";
import { CommandError } from "../../command-error.ts";
import { counted } from "../../display/counted.ts";
import { bytesText } from "../../display/durations.ts";
import { print } from "../../display/output.ts";
import { auditHere } from "../../maintain/audit-here.ts";
import { type BackupWriter, type BesideLogs, newBackup } from "../../maintain/backup-folder.ts";
import { dialNats, findHere, noServerOn } from "../../maintain/here.ts";
import { remoteMaintenance } from "../../maintain/remote.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";
import { Progress, type ProgressTo } from "../../progress.ts";
import { stopSignals } from "../stop-signals.ts";

export type BackupOptions = {
  readonly data: string;
  readonly workspace?: string;
  readonly url?: string;
  readonly here?: boolean;
};

/**
 * Copies the logs of this machine's Tapedeck, of a NATS that the settings name, or of another Tapedeck by its gateway: of all
 * workspaces, or of one. A backup that fails leaves no files.
 */
export async function backUp(folder: string, options: BackupOptions, progressTo: ProgressTo = {}): Promise<void> {
  const { data, url } = options;
  const workspace = options.workspace === undefined ? undefined : namePart(options.workspace);
  const make: MakeBackup = announceTapedeck("backup", options)
    ? remoteMaintenance(url).backUp
    : (writer, how) => backUpHere(data, writer, how);
  using stop = stopSignals();
  await using backup = await newBackup(folder);
  using progress = new Progress({ what: "backup", unit: "bytes", ...progressTo });
  let [logs, messages] = [0, 0];
  const writer: LogWriter = {
    begin: backup.begin,
    async take(piece) {
      await backup.take(piece);
      progress.reached(progress.done + piece.byteLength);
    },
    async end(snapshot) {
      await backup.end(snapshot);
      logs += 1;
      messages += snapshot.state.messages;
    },
  };
  const beside = await make(writer, { workspace, signal: stop.signal }).catch((error: unknown) => {
    throw stop.signal.aborted ? new CommandError("stopped: nothing was backed up.") : error;
  });
  await backup.finish(beside);
  progress[Symbol.dispose]();
  const what = logs === 1 ? "one workspace" : counted(logs, "workspace");
  print(`backed up ${counted(messages, "message")} of ${what} to ${folder} (${bytesText(progress.done)})`);
}

type LogWriter = Pick<BackupWriter, "begin" | "take" | "end">;
type HowToBackUp = { readonly workspace?: string | undefined; readonly signal: AbortSignal };
type MakeBackup = (writer: LogWriter, how: HowToBackUp) => Promise<BesideLogs>;

/** At the NATS that `up` runs on a data folder, or at the one that the settings name. */
async function backUpHere(data: string, writer: LogWriter, { workspace, signal }: HowToBackUp): Promise<BesideLogs> {
  const settings = await (await findHere(data)).nats();
  if (settings === undefined) throw noServerOn(data);
  await using stack = new AsyncDisposableStack();
  const nats = stack.adopt(await dialNats(settings), (connection) => connection.close());
  signal.throwIfAborted();
  const all = await logNames(nats);
  if (workspace !== undefined && !all.includes(workspace)) {
    throw new CommandError(`nothing is recorded in the workspace "${workspace}".`);
  }
  await auditHere(nats, { action: "log.backed-up", about: { ...(workspace !== undefined && { workspace }) } });
  signal.addEventListener("abort", () => void nats.close());
  for (const one of workspace === undefined ? all : [workspace]) {
    await writer.begin(one);
    await writer.end(await backUpLog(nats, one, writer.take));
  }
  const tokens = backupOf(await (await openTokenStore(nats)).read());
  return { tokens, sinks: await new SinkStore(nats).backUp(workspace) };
}
