import { startWorker, type Worker } from "../../frame/worker.ts";
import type * as emmett from "../../workers/emmett.ts";
import type * as redisStreams from "../../workers/redis-streams.ts";
import { Missing, type PeerServer, startRedis } from "./servers.ts";

/** The peers that are installed on this machine. */
export type Peers = {
  readonly redis: RedisPeer | Missing;
  readonly emmett: Worker<typeof emmett>;
  readonly nchan: PeerServer | Missing;
};

export type RedisPeer = PeerServer & { readonly client: Worker<typeof redisStreams> };

export const startRedisClient = (): Promise<Worker<typeof redisStreams>> =>
  startWorker<typeof redisStreams>(new URL("../../workers/redis-streams.ts", import.meta.url));

/** The server and a client. */
export async function startRedisPeer(folder: string): Promise<RedisPeer | Missing> {
  await using cleanup = new AsyncDisposableStack();
  const server = await startRedis(folder);
  if (server instanceof Missing) return server;
  cleanup.use(server);
  const client = cleanup.use(await startRedisClient());
  const owned = cleanup.move();
  return { ...server, client, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
