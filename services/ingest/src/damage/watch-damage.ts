import { jetstreamManager } from "@nats-io/jetstream";
import { isForbidden } from "@tapedeck/shared/log/cluster/replicas";
import { streamOf } from "@tapedeck/shared/log/subjects";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { Semaphore } from "@tapedeck/shared/sync/semaphore";
import { recordingDelays } from "../record/journal/recording-delays.ts";
import { Pace } from "../record/maintain/pace.ts";
import type { Recorder } from "../record/recorder.ts";
import type { OpenStore } from "../store.ts";
import { DamageWatch } from "./damage-watch.ts";
import { checkLog, type Dropped } from "./log-check.ts";

export type WatchDamage = {
  readonly store: OpenStore;
  /** ULID of this process: of several only one reads the log. */
  readonly ingest: string;
  readonly recordFact: Recorder["recordFact"];
  readonly everyMs: number;
  readonly rate: number;
  /** Lets one log be read at a time. */
  readonly turns: Semaphore;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

/** Looks for damage in the log of a workspace, until the signal. */
export function watchDamage({ store, ingest, rate, turns, signal, ...options }: WatchDamage): DamageWatch {
  const { logger } = options;
  const { log, leases, workspace } = store;
  const pace = new Pace({ minShare: 0.1, recordingMs: () => recordingDelays.currentMs });
  const checkInTurn = async () => {
    await using lease = await leases.take(`log-check/${workspace}`, ingest);
    if (lease === undefined) return undefined;
    const checked = await checkLog({
      log,
      ends: log.ends,
      dropped: () => droppedBy(store),
      rate,
      pace,
      signal,
    });
    if (checked !== undefined) {
      // A check takes long, so its other results count although this one could not be stored.
      await log.ends.keepHoles(checked.places).catch((err: unknown) => {
        const advice = isForbidden(err) ? "give this user of NATS its permissions anew" : "the next check tries again";
        logger.warn({ err }, `readers can't learn what the log has lost: ${advice}`);
      });
    }
    return checked;
  };
  const check = async () => {
    const release = await turns.acquire(signal);
    try {
      return release && (await checkInTurn());
    } finally {
      release?.();
    }
  };
  return new DamageWatch({ ...options, workspace, epoch: log.epoch, check, signal });
}

/** By the limits that the stream has. */
export async function droppedBy({ nats, workspace }: Pick<OpenStore, "nats" | "workspace">): Promise<Dropped> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  const { max_age, max_bytes, max_msgs, max_msgs_per_subject } = (await jsm.streams.info(streamOf(workspace))).config;
  if (max_msgs_per_subject > 0) return "anywhere";
  return [max_age, max_bytes, max_msgs].some((limit) => limit > 0) ? "oldest" : "nothing";
}
