import { takeLeftEventLogs } from "@tapedeck/tap/skaffold/event-log/left-event-logs";
import { openSpill } from "@tapedeck/tap/spill/spill";
import { claimOrphan, type OrphanedSpill, orphanedSpills } from "@tapedeck/tap/spill/spill-folder";
import { sentenceOf } from "../command-error.ts";
import type { GrpcTarget } from "../grpc-target.ts";
import type { ConnectionFailure } from "./connection-failure.ts";

export type PushWaiting = {
  /** Where taps leave their spills. */
  readonly home: string;
  readonly target: GrpcTarget;
  /** Selects the spills: not all are meant for that target. */
  readonly isMeant: (orphan: OrphanedSpill) => boolean;
  /** For each step forward; then the next one has its turn. Without it there is no bound: all wait for the first. */
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
  readonly onTaken?: (orphan: OrphanedSpill) => void;
  readonly onLeft?: (orphan: OrphanedSpill, failure: ConnectionFailure | undefined) => void;
  /** Called when the target begins or stops to answer. */
  readonly onConnection?: (isConnected: boolean) => void;
};

const endlessMs = 2 ** 31 - 1;
/** UNAVAILABLE of gRPC, which is loaded when something waits. */
const unavailable = 14;

/**
 * Pushes what taps that are gone could not, one after the other, in the order in which they began. What is refused stays,
 * and so does what another tap's recording is in the way of. Never rejects.
 */
export async function pushWaiting({ home, isMeant, ...options }: PushWaiting): Promise<void> {
  await takeLeftEventLogs(home, options.signal);
  for (const orphan of (await orphanedSpills(home)).filter(isMeant)) {
    if (options.signal.aborted) return;
    using claimed = claimOrphan(orphan.dir);
    if (claimed === undefined) continue;
    try {
      await pushOne(orphan, options);
    } catch (error) {
      options.onLeft?.(orphan, { why: sentenceOf(error), mends: false });
    }
  }
}

async function pushOne(orphan: OrphanedSpill, options: Omit<PushWaiting, "home" | "isMeant">): Promise<void> {
  const { target, timeoutMs = endlessMs, signal } = options;
  await using spill = await openSpill({ dir: orphan.dir });
  const refused = new AbortController();
  const { pushTo } = await import("./push-to.ts");
  const push = pushTo({
    target,
    spill,
    control: async ({ call }) => {
      const message = "this process has exited";
      return { call, code: unavailable, message, response: Buffer.alloc(0) };
    },
    signal: AbortSignal.any([signal, refused.signal]),
    sourceTaken: () => {
      options.onConnection?.(true);
      return undefined;
    },
    onWelcome: () => options.onConnection?.(true),
    onAway: (failure) => {
      options.onConnection?.(false);
      if (failure?.mends === false) refused.abort();
    },
  });
  if (await push.finishWhileMoving(timeoutMs)) {
    options.onTaken?.(orphan);
    return;
  }
  spill.persist();
  options.onLeft?.(orphan, push.failure());
}
