import { statfs } from "node:fs/promises";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";

/** Whether the log's disk is full, as ingest reports it. */
export class ReportedDisk {
  readonly #changed = new Notifier();
  #isFull = false;

  get isFull(): boolean {
    return this.#isFull;
  }

  set isFull(isFull: boolean) {
    this.#isFull = isFull;
    this.#changed.ring();
  }

  /** Resolves at the next report. */
  changed(): Promise<void> {
    return this.#changed.next();
  }
}

export type MendFullDisk = {
  readonly disk: ReportedDisk;
  readonly nats: { readonly restart: () => Promise<void> };
  /** On the disk that NATS writes to. */
  readonly folder: string;
  readonly printLine: (line: string) => void;
  readonly signal: AbortSignal;
  /** How often a full disk is checked for room. Default 2 s. */
  readonly pollMs?: number;
  /** The free space that counts as room. Default 64 MiB. */
  readonly roomBytes?: number;
  /** A server that is started again takes a moment until it takes anything. Default 10 s. */
  readonly settleMs?: number;
};

const defaultRoom = 64 * 1024 * 1024;

/**
 * After a full disk, a nats-server (2.15) writes nothing more before it is restarted. Ingest reports the full disk;
 * once there is room, the server is restarted, and the waiting events are recorded.
 */
export async function mendFullDisk(options: MendFullDisk): Promise<void> {
  const { disk, nats, folder, printLine, signal, pollMs = 2_000, roomBytes = defaultRoom, settleMs = 10_000 } = options;
  let isReported = false;
  /** Restarts once while there is room: if the server still accepts nothing, the cause is another one. */
  let isRestarted = false;
  while (!signal.aborted) {
    const changed = disk.changed();
    if (!disk.isFull) {
      if (isReported) printLine("recording resumes");
      isReported = false;
      isRestarted = false;
      await abortable(changed, signal).catch(() => {});
      continue;
    }
    if (!isReported) printLine("nothing is recorded: the log's disk is full; free some space, and recording resumes");
    isReported = true;
    const { bavail, bsize } = await statfs(folder);
    const hasRoom = bavail * bsize >= roomBytes;
    if (!hasRoom) isRestarted = false;
    if (hasRoom && !isRestarted) {
      isRestarted = true;
      await nats.restart();
      await delay(settleMs, signal);
    }
    await delay(pollMs, signal);
  }
}
