import type { JetStreamManager, PeerInfo, StreamInfo, StreamInfoRequestOptions } from "@nats-io/jetstream";

/** A leader that has not heard from a replica for so long has lost it: the others may elect another one from then on. */
export const silenceMs = 4_000;

/** The answer came, but not from a server that leads the stream and can write to it. */
export class NoLeaderError extends Error {
  override readonly name = "NoLeaderError";

  constructor(stream: string) {
    super(`the stream ${stream} has no leader now`);
  }
}

/**
 * A stream as its leader knows it. A server of a cluster that has no leader for a stream answers from its own replica
 * (nats-server 2.15.1), and a leader that was cut off goes on answering until it notices: what the others have, both may
 * lack. So nobody may conclude from such an answer that the stream has ended earlier, or lacks something.
 * @throws NoLeaderError
 */
export async function infoOfLeader(
  { streams }: Pick<JetStreamManager, "streams">,
  name: string,
  options?: Partial<StreamInfoRequestOptions>,
): Promise<StreamInfo> {
  const info = await streams.info(name, options);
  if (!isOfLeader(info)) throw new NoLeaderError(name);
  return info;
}

/**
 * Whether the answer came from the leader, which is in touch with so many of its followers that it can write. Only the leader
 * itself says since when it leads.
 */
export function isOfLeader({ config, cluster }: Pick<StreamInfo, "config" | "cluster">): boolean {
  if (config.num_replicas <= 1) return true;
  return cluster?.leader_since !== undefined && hasQuorum(cluster.replicas ?? [], silenceMs);
}

type Follower = Partial<Pick<PeerInfo, "active" | "offline">>;

/**
 * Whether a leader is in touch with a majority. `active` is in nanoseconds, and 0 also for a follower that was never heard of:
 * then only `offline` shows that it is away.
 */
export function hasQuorum(followers: readonly Follower[], withinMs: number): boolean {
  const reachable = followers.filter(({ active = 0, offline }) => !offline && active < withinMs * 1_000_000).length;
  return reachable + 1 > (followers.length + 1) / 2;
}
