import { type ConnectionOptions, connect, type NatsConnection } from "nats";

/**
 * A test's connection to a server that the test restarts. It is back within milliseconds. With the default of 2 s and more, a
 * request after the restart could time out before it was sent.
 */
export function connectThroughRestarts(
  servers: string | string[],
  options: ConnectionOptions = {},
): Promise<NatsConnection> {
  return connect({ ...options, servers, maxReconnectAttempts: -1, reconnectTimeWait: 20, reconnectJitter: 0 });
}
