import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { epochOf, formerEpochsOf } from "@tapedeck/shared/log/epoch";
import { forgetErasures } from "@tapedeck/shared/log/erasures/erasure-store";
import { knownEnds } from "@tapedeck/shared/log/known-ends";
import { endSubjects, endsStream, streamOf } from "@tapedeck/shared/log/subjects";
import { isRemoving, type Removal, WorkspaceStore, withEpochs } from "@tapedeck/shared/log/workspaces/workspace-store";
import type { Logger } from "@tapedeck/shared/service/logger";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import type { OpenStores } from "../../store.ts";
import { logOf, recordedIn } from "./begin-removal.ts";

/*
 * The removal of a workspace. Each step is done again after a kill, and none harms another workspace or a later log of the
 * same name:
 *
 *   requested  written down; from here on nobody begins to record there
 *      │       refused, if somebody has begun before
 *   removing   with the epochs of the log: rows and ends of these count for nothing from here on. Query hides its tables,
 *      │       and deletes their rows by itself; every ingest writes nothing more of the workspace
 *      │       the audit log has it; the stream is deleted, and what is kept beside it; erasures are forgotten
 *   done       a log of this name may begin again, with another epoch
 */

export type RemovalJobsOptions = {
  readonly stores: Pick<OpenStores, "nats" | "leases" | "workspaces" | "close">;
  /** ULID of this process: of several only one removes. */
  readonly ingest: string;
  /** For the audit log: once or, after a crash, twice. Never rejects. */
  readonly audit: (removal: Removal) => Promise<void>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
};

/** Delay where another ingest has the turn, which it may lose at any time. */
const turnMs = 1_000;

/** Finishes every removal of a workspace, also one that a kill interrupted. */
export class RemovalJobs implements AsyncDisposable {
  readonly #options: RemovalJobsOptions;
  readonly #store: WorkspaceStore;
  readonly #changed = new Notifier();
  readonly #running: Promise<void>;

  constructor(options: RemovalJobsOptions) {
    this.#options = options;
    this.#store = new WorkspaceStore(options.stores.nats);
    this.#running = this.#run();
  }

  /** The signal has aborted. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { stores, signal, logger } = this.#options;
    using _listening = stores.workspaces.onRemoval(() => this.#changed.ring());
    const retry = backoff(100, 10_000);
    const stopped = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => stopped.resolve(), { once: true });
    while (!signal.aborted) {
      const changed = this.#changed.next();
      try {
        if (await this.#all()) await Promise.race([changed, stopped.promise]);
        else await delay(turnMs, signal);
        retry.reset();
      } catch (err) {
        if (!signal.aborted) logger.warn({ err }, "a workspace can't be removed now; trying again");
        await delay(retry.next(), signal);
      }
    }
  }

  /** False: there are some, and another ingest has the turn. */
  async #all(): Promise<boolean> {
    const { stores, ingest } = this.#options;
    const open = () => stores.workspaces.removals().filter(isRemoving);
    if (open().length === 0) return true;
    await using lease = await stores.leases.take("removals", ingest);
    if (lease === undefined) return false;
    const signal = AbortSignal.any([this.#options.signal, lease.lost]);
    for (const { workspace } of open()) {
      if (!signal.aborted) await this.#remove(workspace);
    }
    return open().length === 0;
  }

  /** The entry is read anew: an attempt before this one may have come far. */
  async #remove(workspace: string): Promise<void> {
    const { stores, audit, logger } = this.#options;
    const { nats } = stores;
    const jsm = await jetstreamManager(nats, { timeout: 10_000, checkAPI: false });
    const removal = await this.#decided(jsm, workspace);
    if (removal?.state !== "removing") return;
    if (removal.audited !== true) {
      await audit(removal);
      await this.#store.advance({ ...removal, audited: true });
    }
    // Other processes do the same when they hear of it. What one of them writes later is of an epoch that is removed.
    await stores.close(removal);
    await deleteLog(jsm, removal);
    await jsm.streams.purge(endsStream, { filter: endSubjects(workspace).all });
    await forgetErasures(nats, workspace);
    await this.#store.advance({ ...removal, audited: true, state: "done" });
    logger.info({ workspace, messages: removal.messages, epochs: removal.epochs }, "a workspace was removed");
  }

  /** Whether it goes on or is refused; undefined: it is over. */
  async #decided(jsm: JetStreamManager, workspace: string): Promise<Removal | undefined> {
    const removal = await this.#store.removalOf(workspace);
    if (removal?.state !== "requested") return removal;
    const reason = await recordedIn(workspace, this.#options.stores.leases);
    const info = await logOf(jsm, workspace);
    const ended = (await knownEnds(jsm, workspace)).map(({ epoch }) => epoch);
    const epochs = info === undefined ? ended : [...formerEpochsOf(info).map(({ epoch }) => epoch), ...ended];
    const epoch = info && epochOf(info);
    if (epoch !== undefined) epochs.push(epoch);
    const decided: Removal =
      reason === undefined
        ? { ...withEpochs(removal, epochs), state: "removing", messages: info?.state.messages ?? 0 }
        : { ...removal, state: "refused", reason };
    await this.#store.advance(decided);
    return decided;
  }
}

/** A log that has begun since is another one. */
async function deleteLog(jsm: JetStreamManager, { workspace, epochs }: Removal): Promise<void> {
  const info = await logOf(jsm, workspace);
  const epoch = info && epochOf(info);
  if (epoch === undefined || !epochs.includes(epoch)) return;
  await jsm.streams.delete(streamOf(workspace));
}
