import { backUpLog } from "@tapedeck/shared/log/backup";
import type { BackupOptions } from "../commands/backup.ts";
import { newBackup } from "./backup-folder.ts";
import { openThisMachine } from "./this-machine.ts";

export async function backUp(folder: string, { data }: BackupOptions): Promise<void> {
  await using machine = await openThisMachine(data);
  await using backup = await newBackup(folder);
  let bytes = 0;
  const snapshot = await backUpLog(machine.nats, async (piece) => {
    bytes += piece.length;
    await backup.take(piece);
  });
  await backup.finish(snapshot);
  const { messages } = snapshot.state;
  console.log(`${messages} events up to now are in ${folder} (${(bytes / 1e6).toFixed(1)} MB)`);
}
