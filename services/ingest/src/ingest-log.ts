import { statfs } from "node:fs/promises";
import { type AuditEntry, auditEntryOf } from "@tapedeck/shared/audit/entry";
import { erasedPerson } from "@tapedeck/shared/audit/person";
import { openAuditStore } from "@tapedeck/shared/audit/store";
import type { DeveloperErasure } from "@tapedeck/shared/log/erasures/developer-erasures";
import type { Erasure } from "@tapedeck/shared/log/erasures/erasure-store";
import { reportCondition } from "@tapedeck/shared/service/condition";
import type { Logger } from "@tapedeck/shared/service/logger";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { ulid } from "ulid";
import type { IngestConfig } from "./config.ts";
import type { DamageState, DamageWatch } from "./damage/damage-watch.ts";
import { watchDamage } from "./damage/watch-damage.ts";
import { PublishFailures } from "./local/publish-failures.ts";
import { EraseJobs, type EraseJobsOptions } from "./record/maintain/erase-jobs.ts";
import { workspaceOf } from "./record/maintain/erasures.ts";
import type { Recorder } from "./record/recorder.ts";
import { type OpenStore, openStore } from "./store.ts";

export type IngestLogOptions = {
  readonly config: Pick<IngestConfig, "nats" | "check">;
  /** Asked for once the log is open. */
  readonly recorder: () => Pick<Recorder, "recordFact" | "surveyLostSources">;
  readonly logger: Logger;
};

/** The log of this process: opened in the background, and from then on watched for damage, lost sources and trouble. */
export class IngestLog implements AsyncDisposable {
  readonly #options: IngestLogOptions;
  readonly #ingest = ulid();
  readonly #stop = new AbortController();
  readonly #failing = Promise.withResolvers<never>();
  /** Resolves with undefined when it is disposed before the log is there, or the log can't be used. */
  readonly opening: Promise<OpenStore | undefined>;
  readonly failures: PublishFailures;
  #store: OpenStore | undefined;
  #damage: DamageWatch | undefined;
  #erasing: EraseJobs | undefined;
  #reporting: Disposable | undefined;

  constructor(options: IngestLogOptions) {
    const { config, logger } = options;
    this.#options = options;
    this.#failing.promise.catch(() => {});
    this.failures = new PublishFailures({ bounds: () => this.bounds(), logger, freeBytes: () => freeBytes(config) });
    this.opening = this.#open();
  }

  /** Undefined while the log is unavailable at the start. */
  get store(): OpenStore | undefined {
    return this.#store;
  }

  /** Rejects when the log can't be used and won't mend by itself. */
  get failed(): Promise<never> {
    return this.#failing.promise;
  }

  get damage(): DamageState | undefined {
    return this.#damage?.state;
  }

  get warnings(): readonly string[] {
    return [this.#damage?.warning].filter((warning) => warning !== undefined);
  }

  async bounds() {
    if (this.#store === undefined) throw new Error("the log is unavailable");
    return this.#store.log.reader.bounds();
  }

  /** Why nothing is recorded now; rejects when the log is unavailable or damaged at its end. */
  async check(): Promise<string | undefined> {
    await this.bounds();
    await this.#store?.assertWhole();
    return this.failures.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.failures[Symbol.dispose]();
    this.#stop.abort();
    const opened = await this.opening;
    this.#reporting?.[Symbol.dispose]();
    await this.#damage?.[Symbol.asyncDispose]();
    await this.#erasing?.[Symbol.asyncDispose]();
    await opened?.[Symbol.asyncDispose]();
  }

  async #open(): Promise<OpenStore | undefined> {
    const { config, logger } = this.#options;
    let opened: OpenStore | undefined;
    try {
      opened = await openStore(config.nats, this.#ingest, logger, this.#stop.signal);
    } catch (cause) {
      logger.error({ err: cause }, "the log can't be used");
      this.#failing.reject(cause);
      return undefined;
    }
    if (opened !== undefined) this.#use(opened);
    return opened;
  }

  #use(store: OpenStore): void {
    const { config, recorder, logger } = this.#options;
    const recordFact: Recorder["recordFact"] = (...fact) => recorder().recordFact(...fact);
    const ingest = this.#ingest;
    this.#store = store;
    void this.#surveyLostSources(store);
    void this.failures.watchServer(store.nats);
    this.#reporting = reportCondition(store.nats, ingest, () => ({
      problems: this.failures.reason === undefined ? [] : [this.failures.reason],
      warnings: this.warnings,
    }));
    this.#damage = watchDamage({ store, ingest, recordFact, ...config.check, logger, signal: this.#stop.signal });
    const audit: EraseJobsOptions["audit"] = (action, erasure) => this.#audit(store, action, erasure);
    const auditDeveloper: EraseJobsOptions["auditDeveloper"] = (action, erasure) =>
      this.#auditDeveloper(store, action, erasure);
    const { signal } = this.#stop;
    this.#erasing = new EraseJobs({ store, ingest, recordFact, audit, auditDeveloper, logger, signal });
  }

  async #audit({ nats }: OpenStore, action: Parameters<EraseJobsOptions["audit"]>[0], erasure: Erasure): Promise<void> {
    const { source, session, events, who, kind, by } = erasure;
    const about = { source, session, ...(events !== undefined && { events }) };
    await this.#append(nats, {
      action,
      who,
      kind,
      workspace: workspaceOf(erasure),
      ...(by !== undefined && { by }),
      about,
    });
  }

  /** The name is in the first entry alone, and replaced there before the second one is written. */
  async #auditDeveloper(
    { nats }: OpenStore,
    action: Parameters<EraseJobsOptions["auditDeveloper"]>[0],
    { workspace, developer = "", sessions, who, kind, by }: DeveloperErasure,
  ): Promise<void> {
    const about = action === "developer.erased" ? { developer: erasedPerson, sessions } : { developer };
    await this.#append(nats, { action, who, kind, workspace, ...(by !== undefined && { by }), about });
  }

  /** What can't be written there goes into this process's log, whole: an erasure must not wait for its entry. */
  async #append(nats: OpenStore["nats"], fields: Omit<AuditEntry, "time">): Promise<void> {
    const entry = auditEntryOf(fields);
    try {
      await (await openAuditStore(nats)).append(entry);
    } catch (err) {
      this.#options.logger.warn({ err, entry }, "this entry could not be written to the audit log");
    }
  }

  /** Sources that an ingest before this one has left. */
  async #surveyLostSources(store: OpenStore): Promise<void> {
    const { recorder, logger } = this.#options;
    const stop = this.#stop.signal;
    const waits = backoff(1_000, 30_000);
    while (!stop.aborted) {
      try {
        return await recorder().surveyLostSources(store);
      } catch (err) {
        logger.warn({ err }, "the log can't be read for sources that are lost: trying again");
        await delay(waits.next(), stop);
      }
    }
  }
}

async function freeBytes({ nats }: IngestLogOptions["config"]): Promise<number | undefined> {
  if (nats.storeDir === undefined) return undefined;
  const { bavail, bsize } = await statfs(nats.storeDir);
  return bavail * bsize;
}
