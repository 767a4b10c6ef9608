import { connect, type NatsConnection } from "nats";
import type { Logger } from "./logger.ts";

export type NatsSettings = {
  readonly url: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
};

/** A connection that comes back by itself for ever; at start it waits until the server is there. */
export async function connectNats(
  name: string,
  { url, user, password }: NatsSettings,
  log: Logger,
): Promise<NatsConnection> {
  const nats = await connect({
    servers: url,
    name,
    ...(user !== undefined && { user }),
    ...(password !== undefined && { pass: password }),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    waitOnFirstConnect: true,
    pingInterval: 10_000,
  });
  const watch = async () => {
    for await (const status of nats.status()) {
      if (status.type === "disconnect" || status.type === "reconnect") log.warn({ url, status: status.type }, "nats");
    }
  };
  watch().catch((error: unknown) => log.error({ err: error }, "nats status"));
  return nats;
}
