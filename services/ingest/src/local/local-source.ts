import { join } from "node:path";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { SourceName } from "@tapedeck/shared/source";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { Link } from "@tapedeck/tap/push/link";
import { pushItems } from "@tapedeck/tap/push/push";
import { openSpill, type SpillState } from "@tapedeck/tap/spill/spill";
import { takeTapId } from "@tapedeck/tap/spill/tap-id";
import { fileMemory } from "@tapedeck/tap/spill/tap-memory";
import { taps } from "@tapedeck/tap/taps";
import { type SourceConfig, upstreamSettings } from "../config.ts";
import type { Lease } from "../record/journal/lease.ts";
import type { Recorder, Store } from "../record/recorder.ts";
import { toServiceError } from "./service-error.ts";
import { UpstreamPresence } from "./upstream-presence.ts";

export type LocalSourceOptions = {
  readonly source: SourceName;
  readonly config: SourceConfig;
  readonly workspace: string;
  readonly upstream: UpstreamName;
  readonly spill: { readonly dir: string; readonly memoryBytes: number; readonly diskBytes: number };
  /** Resolves when the log is there, or with undefined when the signal aborts. */
  readonly store: (signal: AbortSignal) => Promise<Store | undefined>;
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

/** A log that is not there by then is away, and Skaffold is dialled without it. */
const logMs = 2_000;
/** A log that answered and then fails so often (each takes up to 2 s) is away too. */
const mostFailures = 2;
/** How long a stop waits for the log to take the rest. */
const finishMs = 3_000;

export async function startLocalSource(options: LocalSourceOptions): Promise<LocalSource> {
  const { source, config, workspace, upstream, recorder, logger } = options;
  const stop = new AbortController();
  const { developer, project, labels, redact } = config;
  const settings = { ...upstreamSettings(config) };
  const id = takeTapId(options.spill.dir, source);
  const { dir, ...bounds } = options.spill;
  const spill = await openSpill({
    ...{ ...bounds, dir: join(dir, id.tap) },
    hello: { developer, project, upstream, tap: id.tap, labels, redact, settings },
  });
  spill.rename({ developer, project, upstream, tap: id.tap, labels, redact, settings });
  let state: ReturnType<LocalSource["state"]> = "waiting for the log";

  /** Waits until the source is ours; undefined when the signal aborts. */
  async function ours(signal: AbortSignal): Promise<Lease | undefined> {
    const waits = backoff(100, 2_000);
    let failures = 0;
    const store = await options.store(signal);
    if (store !== undefined && config.standby && state !== "tapping") state = "standby";
    // After an outage whoever has the upstream's connection comes first.
    if (config.standby && state !== "tapping") await store?.leases.freed(source, signal);
    while (store !== undefined && !signal.aborted) {
      try {
        const lease = await store.leases.take(source, id.tap);
        if (lease !== undefined) return lease;
        if (state !== "tapping") state = "standby";
        logger.info({ source, state }, "somebody else records this source: standing by");
        await store.leases.freed(source, signal);
      } catch (err) {
        logger.warn({ source, err }, "the log is away");
        // It has not said that somebody else has the source, and Skaffold is best dialled early.
        const isUndecided = state === "waiting for the log" || state === "waiting for the upstream";
        if (isUndecided && ++failures === mostFailures) return undefined;
        await delay(waits.next(), signal);
      }
    }
    return undefined;
  }

  const link: Link = async function* push(requests, signal) {
    await using lease = await ours(signal);
    if (lease === undefined) return;
    try {
      yield* recorder.push(requests, { workspace, signal });
    } catch (cause) {
      throw toServiceError(cause);
    }
  };

  /** Whoever touches the upstream has the lease, or can't know that somebody else has it. */
  async function mayDial(): Promise<Lease | undefined> {
    const bound = new AbortController();
    const late = config.standby ? undefined : setTimeout(() => bound.abort(), logMs);
    const store = await options.store(AbortSignal.any([stop.signal, bound.signal]));
    clearTimeout(late);
    const lease = store && (await ours(stop.signal));
    if (lease === undefined && !stop.signal.aborted) logger.warn({ source }, "the log is away: dialling without it");
    return lease;
  }

  const presence = taps[upstream].livesInCommand ? new UpstreamPresence(config.address) : undefined;

  /** The source is held while there is somebody to record: else a tap that has started the upstream has it. */
  async function run(): Promise<void> {
    try {
      for (let round = 1; !stop.signal.aborted; round++) {
        if (round > 1 && isDrained()) {
          state = "waiting for the upstream";
          await presence?.came(stop.signal);
        }
        const lease = await mayDial();
        if (stop.signal.aborted) await lease?.[Symbol.asyncDispose]();
        else await tapOnce(lease);
      }
    } finally {
      const all = isDrained();
      await spill[Symbol.asyncDispose]();
      if (all) id[Symbol.dispose]();
    }
  }

  /** Until the stop, or until nobody listens any more and all is recorded. */
  async function tapOnce(lease: Lease | undefined): Promise<void> {
    state = "tapping";
    const away = new AbortController();
    const leaving = AbortSignal.any([stop.signal, away.signal]);
    const tap = taps[upstream].run({
      address: config.address,
      emit: (item) => {
        presence?.see(item);
        spill.append(item);
      },
      signal: leaving,
      skipChannels: "logs" in config && config.logs === "off" ? ["logs"] : [],
      settings,
      memory: fileMemory(dir, source, (err) => logger.warn({ source, err }, "what the tap knows can't be kept")),
    });
    void presence?.went(isDrained, leaving).then(() => away.abort());
    const pushing = new AbortController();
    const push = pushItems({ link, spill, control: tap.control, signal: pushing.signal, log: logger });
    try {
      await tap.done;
    } finally {
      if (!(await push.finish(finishMs))) spill.persist();
      pushing.abort();
      await lease?.[Symbol.asyncDispose]();
    }
  }

  function isDrained(): boolean {
    const { committed, nextIndex } = spill.state();
    return committed >= nextIndex - 1n;
  }

  const running = run().catch((err: unknown) => logger.error({ source, err }, "recording of this source has failed"));

  return {
    source,
    address: config.address,
    tap: id.tap,
    state: () => state,
    spill: spill.state,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
    },
  };
}
