import type { StreamInfo } from "@nats-io/jetstream";
import type { Sequence } from "./offset.ts";

/** Key in the stream's metadata. */
export const epochKey = "tapedeck-epoch";

/** Key of the log's format, likewise. */
export const formatKey = "tapedeck-format";

/** The format of the log's messages. A log of another format is refused. */
export const logFormat = "2";

/** JSON of FormerEpoch[], oldest first; missing on a log that was never restored. */
export const formerEpochsKey = "tapedeck-former-epochs";

/** The epoch of a log before it was restored from a backup, and the backup's last sequence. */
export type FormerEpoch = { readonly epoch: string; readonly lastSeq: Sequence };

/** Undefined when the stream was not made by Tapedeck. */
export function epochOf({ config }: Pick<StreamInfo, "config">): string | undefined {
  return config.metadata?.[epochKey];
}

/** Why a log that Tapedeck made can't be read by this version, in one sentence; undefined when it can. */
export function refusalOfFormat({ config }: Pick<StreamInfo, "config">): string | undefined {
  const format = config.metadata?.[formatKey] ?? "none";
  if (format === logFormat) return undefined;
  return `the log has another format (${format}) than this version reads (${logFormat}): use the version that wrote it.`;
}

/** The epochs that the stream had before it was restored, as it has them in its metadata. */
export function formerEpochsOf({ config }: Pick<StreamInfo, "config">): readonly FormerEpoch[] {
  const text = config.metadata?.[formerEpochsKey];
  return text === undefined ? [] : (JSON.parse(text) as readonly FormerEpoch[]);
}

/** Six random characters of 0-9 a-z. */
export function newEpoch(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(6)), (random) => (random % 36).toString(36)).join("");
}
