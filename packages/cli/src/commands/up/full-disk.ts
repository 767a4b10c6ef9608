import { statfs } from "node:fs/promises";
import { delay } from "@tapedeck/shared/sync/delay";
import { readMetrics, sumOf } from "../../api/metrics.ts";

export type MendFullDisk = {
  /** Ingest's health, "host:port". */
  readonly ingest: string;
  readonly nats: { readonly restart: () => Promise<void> };
  /** On the disk that NATS writes to. */
  readonly folder: string;
  readonly printLine: (line: string) => void;
  readonly signal: AbortSignal;
  /** Default 2 s. */
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
  const {
    ingest,
    nats,
    folder,
    printLine,
    signal,
    pollMs = 2_000,
    roomBytes = defaultRoom,
    settleMs = 10_000,
  } = options;
  let isReported = false;
  /** Restarts once while there is room: if the server still accepts nothing, the cause is another one. */
  let isRestarted = false;
  while (!signal.aborted) {
    await delay(pollMs, signal);
    const isFull = sumOf(await readMetrics(ingest), "tapedeck_ingest_log_full") === 1;
    if (signal.aborted) return;
    if (isFull && !isReported)
      printLine("nothing is recorded: the log's disk is full; free some space, and recording resumes");
    if (!isFull) {
      if (isReported) printLine("recording resumes");
      isReported = false;
      isRestarted = false;
      continue;
    }
    isReported = true;
    const { bavail, bsize } = await statfs(folder);
    const hasRoom = bavail * bsize >= roomBytes;
    if (!hasRoom) isRestarted = false;
    if (!hasRoom || isRestarted) continue;
    isRestarted = true;
    await nats.restart();
    await delay(settleMs, signal);
  }
}
