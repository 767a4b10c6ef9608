import { JetStreamApiError, type JetStreamManager, type StreamInfo } from "@nats-io/jetstream";
import { streamName } from "../subjects.ts";

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

/** The replicas for data beside the log, as many as the log has: 1 while there is no log yet. */
export async function replicasOfLog(jsm: JetStreamManager): Promise<number> {
  try {
    return (await jsm.streams.info(streamName)).config.num_replicas;
  } catch (cause) {
    if (cause instanceof JetStreamApiError && cause.code === streamNotFound) return 1;
    throw cause;
  }
}

/** Gives a stream beside the log as many replicas as the log has. */
export async function replicateAsLog(jsm: JetStreamManager, stream: string): Promise<void> {
  await raiseReplicas(jsm, await jsm.streams.info(stream), await replicasOfLog(jsm));
}

const streamNotFound = 10059;
