import { join } from "node:path";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { SourceName } from "@tapedeck/shared/source";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { RecorderLink } from "@tapedeck/tap/push/link";
import { pushItems } from "@tapedeck/tap/push/push";
import { openSpill, type Spill, type SpillState } from "@tapedeck/tap/spill/spill";
import { type TapId, takeTapId } from "@tapedeck/tap/spill/tap-id";
import { fileMemory } from "@tapedeck/tap/spill/tap-memory";
import type { UpstreamTap } from "@tapedeck/tap/tap";
import { taps } from "@tapedeck/tap/taps";
import { type SourceConfig, upstreamSettings } from "../config.ts";
import type { Lease, Leases } from "../record/journal/lease.ts";
import { notReady } from "../record/push-errors.ts";
import type { Recorder } from "../record/recorder.ts";
import { toServiceError } from "./service-error.ts";
import { UpstreamPresence } from "./upstream-presence.ts";

export type LocalSourceOptions = {
  readonly source: SourceName;
  readonly config: SourceConfig;
  readonly workspace: string;
  readonly upstream: UpstreamName;
  readonly spill: { readonly dir: string; readonly memoryBytes: number; readonly diskBytes: number };
  /** Resolves when the log is there, or with undefined when the signal aborts. */
  readonly leases: (signal: AbortSignal) => Promise<Leases | undefined>;
  readonly recorder: Pick<Recorder, "push">;
  readonly logger: Logger;
};

/** An upstream that this process taps and records. Disposing leaves it in an idle moment, and keeps what is not recorded. */
export type LocalSource = AsyncDisposable & {
  readonly source: SourceName;
  readonly address: string;
  readonly tap: string;
  readonly state: () => "waiting for the log" | "waiting for the upstream" | "standby" | "tapping";
  readonly spill: () => SpillState;
};

/**
 * A lease that was lost before the recorder took it over is taken again. A tap that hears that another one records its
 * source would give up.
 */
function lostAgain(cause: unknown, source: SourceName): unknown {
  const isTaken = cause instanceof TapedeckError && cause.code === "source_taken";
  return isTaken ? notReady(`${source} was taken by another recorder`, cause) : cause;
}

/** A log that is not there by then is away, and the upstream is dialled without it. */
const logMs = 2_000;
/** A log that answered and then fails so often (each takes up to 2 s) is away too. */
const maxFailures = 2;
/** How long a stop waits for the log to take the rest. */
const finishMs = 3_000;

export async function startLocalSource(options: LocalSourceOptions): Promise<LocalSource> {
  const { source, config, upstream } = options;
  const { developer, project, labels, redact } = config;
  const settings = { ...upstreamSettings(config) };
  const id = takeTapId(options.spill.dir, source);
  const { dir, ...bounds } = options.spill;
  const hello = { developer, project, upstream, tap: id.tap, labels, redact, settings };
  const spill = await openSpill({ ...bounds, dir: join(dir, id.tap), hello });
  spill.rename(hello);
  return new TappedSource(options, id, spill, await taps[upstream]());
}

class TappedSource implements LocalSource {
  readonly #options: LocalSourceOptions;
  readonly #id: TapId;
  readonly #spill: Spill;
  readonly #tap: UpstreamTap;
  readonly #presence: UpstreamPresence | undefined;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #state: ReturnType<LocalSource["state"]> = "waiting for the log";

  constructor(options: LocalSourceOptions, id: TapId, spill: Spill, tap: UpstreamTap) {
    const { source, config, logger } = options;
    this.#options = options;
    this.#id = id;
    this.#spill = spill;
    this.#tap = tap;
    this.#presence = tap.livesInCommand ? new UpstreamPresence(config.address) : undefined;
    this.#running = this.#run().catch((err: unknown) =>
      logger.error({ source, err }, "recording of this source has failed"),
    );
  }

  get source(): SourceName {
    return this.#options.source;
  }

  get address(): string {
    return this.#options.config.address;
  }

  get tap(): string {
    return this.#id.tap;
  }

  readonly state = () => this.#state;

  readonly spill = () => this.#spill.state();

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** The source is held while a recorder is there: otherwise a tap that has started the upstream has it. */
  async #run(): Promise<void> {
    const stop = this.#stop.signal;
    try {
      for (let round = 1; !stop.aborted; round++) {
        if (round > 1 && this.#isDrained()) {
          this.#state = "waiting for the upstream";
          await this.#presence?.came(stop);
        }
        const lease = await this.#mayDial();
        if (stop.aborted) await lease?.[Symbol.asyncDispose]();
        else await this.#tapOnce(lease);
      }
    } finally {
      const all = this.#isDrained();
      await this.#spill[Symbol.asyncDispose]();
      if (all) this.#id[Symbol.dispose]();
    }
  }

  /** Only the holder of the lease touches the upstream, or one that cannot know of another holder. */
  async #mayDial(): Promise<Lease | undefined> {
    const { source, config, leases: leasesOf, logger } = this.#options;
    const stop = this.#stop.signal;
    const bound = new AbortController();
    const late = config.standby ? undefined : startTimer(() => bound.abort(), logMs);
    const leases = await leasesOf(AbortSignal.any([stop, bound.signal]));
    stopTimer(late);
    const lease = leases && (await this.#take(stop));
    if (lease === undefined && !stop.aborted) logger.warn({ source }, "the log is unavailable: dialling without it");
    return lease;
  }

  /** Waits until the source is ours; undefined when the signal aborts. */
  async #take(signal: AbortSignal): Promise<Lease | undefined> {
    const { source, config, leases: leasesOf, logger } = this.#options;
    const waits = backoff(100, 2_000);
    let failures = 0;
    const leases = await leasesOf(signal);
    if (leases !== undefined && config.standby && this.#state !== "tapping") this.#state = "standby";
    // After an outage the holder of the upstream's connection comes first.
    if (config.standby && this.#state !== "tapping") await leases?.freed(source, signal);
    while (leases !== undefined && !signal.aborted) {
      try {
        const lease = await leases.take(source, this.tap);
        if (lease !== undefined) return lease;
        if (this.#state !== "tapping") this.#state = "standby";
        logger.info({ source, state: this.#state }, "another recorder has this source: standing by");
        await leases.freed(source, signal);
      } catch (err) {
        logger.warn({ source, err }, "the log is unavailable");
        // No other holder has been reported, and the upstream is best dialled early.
        const isUndecided = this.#state === "waiting for the log" || this.#state === "waiting for the upstream";
        if (isUndecided && ++failures === maxFailures) return undefined;
        await delay(waits.next(), signal);
      }
    }
    return undefined;
  }

  /** Until the stop, or until the upstream is gone and all is recorded. */
  async #tapOnce(lease: Lease | undefined): Promise<void> {
    const { source, config, logger } = this.#options;
    const { dir } = this.#options.spill;
    const spill = this.#spill;
    this.#state = "tapping";
    const away = new AbortController();
    const leaving = AbortSignal.any([this.#stop.signal, away.signal]);
    const tap = this.#tap.run({
      address: config.address,
      emit: (item) => {
        this.#presence?.see(item);
        spill.append(item);
      },
      signal: leaving,
      skipChannels: "logs" in config && config.logs === "off" ? ["logs"] : [],
      settings: { ...upstreamSettings(config) },
      memory: fileMemory(dir, source, (err) => logger.warn({ source, err }, "the tap's memory can't be saved")),
    });
    void this.#presence?.went(() => this.#isDrained(), leaving).then(() => away.abort());
    const pushing = new AbortController();
    const { control, stream } = tap;
    const options = { link: this.#link(), spill, control, stream, signal: pushing.signal, log: logger, together: true };
    const push = pushItems(options);
    try {
      await tap.done;
    } finally {
      if (!(await push.finish(finishMs))) spill.persist();
      pushing.abort();
      await lease?.[Symbol.asyncDispose]();
    }
  }

  #link(): RecorderLink {
    const { source, workspace, recorder } = this.#options;
    const take = (signal: AbortSignal) => this.#take(signal);
    return async function* push(requests, signal) {
      await using lease = await take(signal);
      if (lease === undefined) return;
      try {
        yield* recorder.push(requests, { workspace, isConfigured: true, signal });
      } catch (cause) {
        throw toServiceError(lostAgain(cause, source));
      }
    };
  }

  #isDrained(): boolean {
    const { committed, nextIndex } = this.#spill.state();
    return committed >= nextIndex - 1n;
  }
}
