import { statfs } from "node:fs/promises";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { openLogsOnRequest } from "@tapedeck/shared/log/workspaces/open-on-request";
import { reportCondition } from "@tapedeck/shared/service/condition";
import type { Logger } from "@tapedeck/shared/service/logger";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { Semaphore } from "@tapedeck/shared/sync/semaphore";
import { ulid } from "ulid";
import type { IngestConfig } from "./config.ts";
import type { DamageState, DamageWatch } from "./damage/damage-watch.ts";
import { watchDamage } from "./damage/watch-damage.ts";
import { PublishFailures } from "./local/publish-failures.ts";
import { EraseJobs } from "./record/maintain/erase-jobs.ts";
import { MaintenanceAudit } from "./record/maintain/maintenance-audit.ts";
import type { Recorder } from "./record/recorder.ts";
import { RemovalJobs } from "./record/removal/removal-jobs.ts";
import { Retentions } from "./record/retention/retentions.ts";
import { SessionExpiry } from "./record/retention/session-expiry.ts";
import { type OpenStore, type OpenStores, openStores } from "./store.ts";

export type IngestLogOptions = {
  readonly config: Pick<IngestConfig, "nats" | "check" | "workspace" | "retention">;
  /** Asked for once the log is open. */
  readonly recorder: () => Pick<Recorder, "recordFact" | "surveyLostSources" | "forgetWorkspace">;
  readonly logger: Logger;
};

/** How many workspaces are opened at once at the start. */
const openedAtOnce = 8;

/**
 * The logs of this process: opened in the background, and from then on watched for damage, lost sources and trouble. What
 * is wrong with one workspace's log keeps only recording in that one from going on.
 */
export class IngestLog implements AsyncDisposable {
  readonly #options: IngestLogOptions;
  readonly #ingest = ulid();
  readonly #stop = new AbortController();
  readonly #failing = Promise.withResolvers<never>();
  /** Resolves with undefined when it is disposed before NATS is there, or the log of the own workspace can't be used. */
  readonly opening: Promise<OpenStores | undefined>;
  readonly failures: PublishFailures;
  readonly retentions: Retentions;
  readonly #checks = new Semaphore(1);
  readonly #watches = new Map<
    string,
    { readonly watch: DamageWatch; readonly stop: AbortController; readonly store: OpenStore }
  >();
  /** The workspaces whose log can't be used, with the sentences for people. */
  readonly #unusable = new Map<string, string>();
  readonly #audit: MaintenanceAudit;
  #connection: OpenStores["nats"] | undefined;
  #stores: OpenStores | undefined;
  #erasing: EraseJobs | undefined;
  #removing: RemovalJobs | undefined;
  #expiring: SessionExpiry | undefined;
  #reporting: Disposable | undefined;
  #surveying: Promise<void> = Promise.resolve();

  constructor(options: IngestLogOptions) {
    const { config, logger } = options;
    this.#options = options;
    this.#failing.promise.catch(() => {});
    this.failures = new PublishFailures({ reach: () => this.reach(), logger, freeBytes: () => freeBytes(config) });
    this.#audit = new MaintenanceAudit(() => this.#connection, logger);
    this.retentions = new Retentions({
      defaults: config.retention,
      stores: () => this.#stores,
      audit: this.#audit.retention,
    });
    this.opening = this.#open();
  }

  /** Undefined while NATS is unavailable at the start. */
  get stores(): OpenStores | undefined {
    return this.#stores;
  }

  /** Rejects when the log of the own workspace can't be used and won't mend by itself. */
  get failed(): Promise<never> {
    return this.#failing.promise;
  }

  get damage(): readonly DamageState[] {
    return [...this.#watches.values()].map(({ watch }) => watch.state);
  }

  get warnings(): readonly string[] {
    const damaged = [...this.#watches.values()].map(({ watch }) => watch.warning);
    return [...damaged.filter((warning) => warning !== undefined), ...this.#unusable.values(), ...this.full];
  }

  /** Why nothing is recorded in workspaces whose logs are as large as they may be, a sentence for each. */
  get full(): readonly string[] {
    return [...this.#watches.values()].flatMap(({ store }) => store.whyFull() ?? []);
  }

  /** Rejects when the log of the own workspace can't be asked. */
  async reach(): Promise<void> {
    if (this.#stores === undefined) throw new Error("the log is unavailable");
    const { log } = await this.#stores.of(this.#options.config.workspace);
    await log.reader.bounds();
  }

  /** Why nothing is recorded now; rejects when NATS is unavailable, or the log of the own workspace is damaged at its end. */
  async check(): Promise<string | undefined> {
    await this.reach();
    await (await this.#stores?.of(this.#options.config.workspace))?.assertWhole();
    return this.failures.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.failures[Symbol.dispose]();
    this.#stop.abort();
    const opened = await this.opening;
    this.#reporting?.[Symbol.dispose]();
    await this.#surveying;
    await Promise.all([...this.#watches.values()].map(({ watch }) => watch[Symbol.asyncDispose]()));
    await this.#erasing?.[Symbol.asyncDispose]();
    await this.#removing?.[Symbol.asyncDispose]();
    await this.#expiring?.[Symbol.asyncDispose]();
    await opened?.[Symbol.asyncDispose]();
  }

  async #open(): Promise<OpenStores | undefined> {
    const { config, logger } = this.#options;
    const { signal } = this.#stop;
    let stores: OpenStores | undefined;
    try {
      stores = await openStores(config.nats, this.#ingest, logger, signal);
      if (stores === undefined) return undefined;
      stores.listen({
        opened: (store) => this.#watch(store),
        removed: (workspace) => this.#forget(workspace),
      });
      this.#connection = stores.nats;
      this.#removeWorkspaces(stores);
      await untilUsable(stores, config.workspace, logger, signal);
    } catch (cause) {
      logger.error({ err: cause }, "the log can't be used");
      this.#failing.reject(cause);
      await stores?.[Symbol.asyncDispose]();
      return undefined;
    }
    this.#use(stores);
    return stores;
  }

  /** From the start: the removal of the own workspace may have been interrupted. */
  #removeWorkspaces(stores: OpenStores): void {
    const { signal } = this.#stop;
    const { removal: audit } = this.#audit;
    this.#removing = new RemovalJobs({ stores, ingest: this.#ingest, audit, logger: this.#options.logger, signal });
  }

  #use(stores: OpenStores): void {
    const { recorder, logger } = this.#options;
    const { nats } = stores;
    this.#stores = stores;
    void this.failures.watchServer(nats);
    this.#reporting = reportCondition(nats, this.#ingest, () => ({
      problems: this.failures.reason === undefined ? [] : [this.failures.reason],
      warnings: this.warnings,
    }));
    openLogsOnRequest(nats, async (workspace) => void (await stores.of(workspace)));
    const { session: audit, developer: auditDeveloper } = this.#audit;
    const recordFact: Recorder["recordFact"] = (...fact) => recorder().recordFact(...fact);
    const { signal } = this.#stop;
    const ingest = this.#ingest;
    this.#erasing = new EraseJobs({ stores, ingest, recordFact, audit, auditDeveloper, logger, signal });
    const { everyMs } = this.#options.config.retention;
    this.#expiring = new SessionExpiry({ stores, retentions: this.retentions, ingest, everyMs, logger, signal });
    this.#surveying = this.#openAll(stores);
  }

  #watch(store: OpenStore): void {
    const { config, recorder, logger } = this.#options;
    if (this.#stop.signal.aborted || this.#watches.has(store.workspace)) return;
    const recordFact: Recorder["recordFact"] = (...fact) => recorder().recordFact(...fact);
    const ingest = this.#ingest;
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#stop.signal, stop.signal]);
    const watch = watchDamage({ store, ingest, recordFact, ...config.check, turns: this.#checks, logger, signal });
    this.#watches.set(store.workspace, { watch, stop, store });
  }

  /** The workspace is being removed: nothing is to write into a log of its name by itself. */
  async #forget(workspace: string): Promise<void> {
    this.#options.recorder().forgetWorkspace(workspace);
    this.#unusable.delete(workspace);
    const watched = this.#watches.get(workspace);
    this.#watches.delete(workspace);
    watched?.stop.abort();
    await watched?.watch[Symbol.asyncDispose]();
  }

  /** Opens what an ingest before this one has recorded, for damage that was done meanwhile, and sources that it has left. */
  async #openAll(stores: OpenStores): Promise<void> {
    const { recorder, logger } = this.#options;
    const stop = this.#stop.signal;
    const atOnce = new Semaphore(openedAtOnce);
    const names = await retried(() => stores.names(), "the workspaces can't be listed", logger, stop);
    const survey = async (workspace: string): Promise<void> => {
      const release = await atOnce.acquire(stop);
      try {
        const what = "the log can't be read for sources that are lost";
        const look = async () => {
          // It may have been removed since the names were listed.
          const store = await stores.existing(workspace);
          if (store !== undefined) await recorder().surveyLostSources(store);
        };
        await retried(look, what, logger, stop);
      } catch (err) {
        if (stop.aborted) return;
        logger.error({ err, workspace }, "the log of a workspace can't be used");
        this.#unusable.set(workspace, `the workspace "${workspace}": ${(err as Error).message}`);
      } finally {
        release?.();
      }
    };
    await Promise.all((names ?? []).map(survey));
  }
}

/**
 * Tries until it succeeds, the signal aborts (undefined), or a log can't be used.
 * @throws LogUnusableError
 */
async function retried<T>(
  work: () => Promise<T>,
  what: string,
  logger: Logger,
  signal: AbortSignal,
): Promise<T | undefined> {
  const waits = backoff(1_000, 30_000);
  while (!signal.aborted) {
    try {
      return await work();
    } catch (err) {
      if (err instanceof LogUnusableError) throw err;
      if (!signal.aborted) logger.warn({ err }, `${what}: trying again`);
      await delay(waits.next(), signal);
    }
  }
  return undefined;
}

/** Resolves when the log of the workspace is open. @throws LogUnusableError */
async function untilUsable(stores: OpenStores, workspace: string, logger: Logger, signal: AbortSignal): Promise<void> {
  const waits = backoff(100, 500);
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      await stores.of(workspace);
      return;
    } catch (err) {
      if (err instanceof LogUnusableError) throw err;
      if (isFirst) logger.warn({ err, workspace }, "the log is unavailable: items wait in the spills of their taps");
      await delay(waits.next(), signal);
    }
  }
}

async function freeBytes({ nats }: IngestLogOptions["config"]): Promise<number | undefined> {
  if (nats.storeDir === undefined) return undefined;
  const { bavail, bsize } = await statfs(nats.storeDir);
  return bavail * bsize;
}
