import { JetStreamApiError, type JetStreamManager, type StreamConfig } from "@nats-io/jetstream";
import { replicasOfLogs, replicateAsLogs } from "./cluster/replicas.ts";

const streamExists = 10058;

/** Names of a NATS KV bucket, as NATS' own programs make them. */
export function bucketNames(bucket: string): { readonly stream: string; readonly subject: (key: string) => string } {
  return { stream: `KV_${bucket}`, subject: (key) => `$KV.${bucket}.${key}` };
}

/** Creates the bucket as NATS' own programs do, unless it is there: maybe with its operator's own settings. */
export async function ensureBucket(
  jsm: JetStreamManager,
  bucket: string,
  more: Partial<StreamConfig> = {},
): Promise<void> {
  const { stream, subject } = bucketNames(bucket);
  try {
    await jsm.streams.add({
      name: stream,
      subjects: [subject(">")],
      max_msgs_per_subject: 1,
      discard: "new",
      storage: "file",
      allow_direct: true,
      allow_rollup_hdrs: true,
      deny_delete: true,
      num_replicas: await replicasOfLogs(jsm),
      ...more,
    });
  } catch (cause) {
    if (!(cause instanceof JetStreamApiError && cause.code === streamExists)) throw cause;
    await replicateAsLogs(jsm, stream);
  }
}
