import { JetStreamApiError, type JetStreamManager, type StreamInfo } from "@nats-io/jetstream";
import { endsStream } from "../subjects.ts";

/** Gives a stream `replicas` replicas if it has fewer. One that has more keeps them: its operator chose that. */
export async function raiseReplicas(jsm: JetStreamManager, info: StreamInfo, replicas: number): Promise<StreamInfo> {
  if (info.config.num_replicas >= replicas) return info;
  try {
    return await jsm.streams.update(info.config.name, { num_replicas: replicas });
  } catch (cause) {
    // The user of a service may not change streams (infra/nats/tapedeck-users.conf): then its operator does.
    if (isForbidden(cause)) return info;
    throw cause;
  }
}

/** The user of this connection lacks a permission. The client wraps the server's refusal of a request. */
export function isForbidden(error: unknown): boolean {
  return error instanceof Error && (error.name === "PermissionViolationError" || isForbidden(error.cause));
}

/** The replicas for data beside the logs, as many as ingest has given to the ends: 1 until it has started. */
export async function replicasOfLogs(jsm: JetStreamManager): Promise<number> {
  try {
    return (await jsm.streams.info(endsStream)).config.num_replicas;
  } catch (cause) {
    if (cause instanceof JetStreamApiError && cause.code === streamNotFound) return 1;
    throw cause;
  }
}

/** Gives a stream beside the logs as many replicas as these have. */
export async function replicateAsLogs(jsm: JetStreamManager, stream: string): Promise<void> {
  await raiseReplicas(jsm, await jsm.streams.info(stream), await replicasOfLogs(jsm));
}

const streamNotFound = 10059;
