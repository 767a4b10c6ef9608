import { checkAgain } from "@tapedeck/shared/log/check-again";
import type { LogReader } from "@tapedeck/shared/log/log";
import type { Logger } from "@tapedeck/shared/service/logger";
import { type SinkEntry, SinkStore, sinkOwnerSubject, sinkSubjects } from "@tapedeck/shared/sinks/sink-store";
import { retried } from "@tapedeck/shared/sync/retried";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { NatsConnection } from "nats";
import { ulid } from "ulid";
import type { LogLink } from "../log-link.ts";
import { controlIn, definitionIn, type SinkDefinition } from "./definition.ts";
import type { ActiveSink, RunningSinks } from "./delivery/running-sinks.ts";
import { defaultSinkTimes, type SinkTimes } from "./delivery/times.ts";
import type { CauseOf } from "./format/format.ts";
import type { SinkSettings } from "./settings.ts";
import type { SinkMetrics } from "./sink-metrics.ts";

// The sinks of all workspaces, and the gateway that delivers them:
//
//   bucket TAPEDECK_SINKS ─▶ Sinks: which there are ─▶ SinkLease: one gateway ─▶ RunningSinks ─▶ RunningSink
//   settings (`sinks`)    ─▶                                                                     │
//                                           follow the log ─▶ Gatherer ─▶ Delivery ─▶ target     ▼
//                                                                            └─▶ parked     SinkCursor
//
// 1. An event is accepted by the target, or stored as parked, before the cursor passes it: nothing is lost, whatever is killed.
// 2. A sink has one request in flight, and its next events follow when that is accepted: they are in order. After a kill some are repeated,
//    with the same ids, from the cursor on.
// 3. A cursor's write names the revision before. When two gateways deliver, one of them is refused, and reads it again.
// 4. Without sinks there is neither a lease nor a loop, only one look at the bucket and a subscription to its changes.

/** A sink as this gateway knows it. */
export type KnownSink = ActiveSink & {
  /** Where it was defined. */
  readonly origin: "stored" | "settings";
  readonly isPaused: boolean;
};

export type SinksDeps = {
  readonly settings: SinkSettings;
  readonly link: Pick<LogLink, "nats" | "opened" | "workspaces">;
  readonly logOf: (workspace: string) => Promise<LogReader>;
  readonly counts: SinkMetrics;
  readonly causeOf: CauseOf;
  readonly logger: Logger;
  readonly times?: Partial<SinkTimes> | undefined;
};

/** A server alone loses nothing that is heard. */
const checkTimes = { aloneMs: 300_000, inClusterMs: 30_000 };

/** What is heard may not be stored yet. */
const storedMs = [200, 2_000];

export class Sinks implements AsyncDisposable {
  readonly #deps: SinksDeps;
  readonly #times: SinkTimes;
  readonly #watching = new AsyncDisposableStack();
  readonly #reads = new Set<Timer>();
  #known: readonly KnownSink[] = [];
  #reading: Promise<unknown> = Promise.resolve();
  /** The read that begins when the present one has ended. */
  #nextRead: Promise<void> | undefined;
  #lease: AsyncDisposable | undefined;
  #running: RunningSinks | undefined;
  #stored: { readonly of: NatsConnection; readonly store: SinkStore } | undefined;
  readonly #over = new AbortController();

  constructor(deps: SinksDeps) {
    this.#deps = deps;
    this.#times = { ...defaultSinkTimes, ...deps.times };
    this.#known = this.#with([], []);
    const watch = async () => this.#watch(deps.link.nats().connection);
    deps.link.opened.then(() => retried(watch, this.#over.signal)).catch(() => {}); // the next gateway tries again
  }

  /** The sinks that are delivered here now; empty at another gateway. */
  get running(): RunningSinks["all"] {
    return this.#running?.all ?? [];
  }

  /** @throws TapedeckError not_ready */
  store(): SinkStore {
    const { connection } = this.#deps.link.nats();
    if (this.#stored?.of !== connection) this.#stored = { of: connection, store: new SinkStore(connection) };
    return this.#stored.store;
  }

  /** All sinks, as the bucket has them now. Rejects while NATS is away. */
  async all(): Promise<readonly KnownSink[]> {
    await this.changed();
    return this.#known;
  }

  /** Something was changed: reads it. Calls share a read that has not begun yet. Rejects while NATS is away. */
  changed(): Promise<void> {
    this.#nextRead ??= this.#reading
      .catch(() => {})
      .then(() => {
        this.#nextRead = undefined;
        return this.#read();
      });
    this.#reading = this.#nextRead;
    return this.#nextRead;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    for (const timer of this.#reads) stopTimer(timer);
    await this.#watching.disposeAsync();
    await this.#reading.catch(() => {});
    await this.#endLease();
  }

  #watch(connection: NatsConnection): void {
    if (this.#over.signal.aborted) return;
    const checking = this.#watching.use(checkAgain(connection, () => this.changed(), checkTimes));
    const heard = (error: Error | null) => (error === null ? this.#readSoon() : checking.isDeaf());
    for (const type of ["sink", "control"] as const) {
      const subscription = connection.subscribe(sinkSubjects(type), { callback: heard });
      this.#watching.defer(() => void (connection.isClosed() || subscription.unsubscribe()));
    }
    this.#watching.use(this.#deps.link.workspaces().onRemoval(() => this.#readSoon()));
    checking.now();
  }

  #readSoon(): void {
    for (const ms of storedMs) {
      const timer = startTimer(() => {
        this.#reads.delete(timer);
        this.changed().catch(() => {}); // the next check reads it
      }, ms).unref();
      this.#reads.add(timer);
    }
  }

  async #read(): Promise<void> {
    const entries = await this.store().all(["sink", "control"]);
    const gone = entries.filter((entry) => entry.type === "sink" && this.#isRemoved(entry));
    for (const { workspace, sink } of gone) await removeSink(this.store(), { workspace, sink });
    const before = this.#known;
    this.#known = this.#with(
      entries.filter((one) => one.type === "sink" && !gone.includes(one)),
      entries.filter(({ type }) => type === "control"),
    );
    try {
      await this.#apply();
    } finally {
      for (const one of before) if (!this.#isKnown(one)) this.#deps.counts.forget(one);
    }
  }

  #isKnown({ workspace, sink }: ActiveSink): boolean {
    return this.#known.some((one) => one.workspace === workspace && one.sink === sink);
  }

  #with(stored: readonly SinkEntry[], controls: readonly SinkEntry[]): readonly KnownSink[] {
    const known = (workspace: string, sink: string, definition: SinkDefinition, origin: KnownSink["origin"]) => {
      const control = controls.find((one) => one.workspace === workspace && one.sink === sink);
      const { paused = false, generation } = controlIn(control?.value) ?? {};
      return { workspace, sink, definition, generation, isPaused: paused, origin };
    };
    const { sinks } = this.#deps.settings;
    const configured = sinks.map(({ workspace, sink, definition }) => known(workspace, sink, definition, "settings"));
    // What an admin has defined under the name of one of the settings counts for nothing.
    const others = stored.flatMap(({ workspace, sink, value }) => {
      const definition = definitionIn(value);
      const isConfigured = sinks.some((one) => one.workspace === workspace && one.sink === sink);
      if (definition === undefined || isConfigured) return [];
      return [known(workspace, sink, definition, "stored")];
    });
    return [...configured, ...others];
  }

  /** A workspace that is removed takes its sinks along. */
  #isRemoved({ workspace, value }: SinkEntry): boolean {
    const removal = this.#deps.link.workspaces().removalOf(workspace);
    const epoch = definitionIn(value)?.epoch;
    return removal?.state === "done" && epoch !== undefined && removal.epochs.includes(epoch);
  }

  async #apply(): Promise<void> {
    if (this.#over.signal.aborted) return;
    const removed = this.running.filter(({ sink }) => !this.#isKnown(sink));
    const active = this.#active();
    if (active.length === 0) await this.#endLease();
    else if (this.#lease === undefined) await this.#beginLease();
    else await this.#running?.set(active);
    // It may have been written after the sink was removed.
    for (const { sink } of removed) await this.store().remove({ ...sink, type: "status" });
  }

  async #beginLease(): Promise<void> {
    // A gateway without sinks loads nothing of this.
    const { SinkLease } = await import("./sink-lease.ts");
    const store = () => this.store();
    const hold = (lost: AbortSignal) => this.#hold(lost);
    const failed = (err: unknown) => this.#deps.logger.warn({ err }, "sinks can't be delivered now");
    const lease = new SinkLease({ store, gateway: ulid(), times: this.#times, hold, failed });
    const { connection } = this.#deps.link.nats();
    const freed = connection.subscribe(sinkOwnerSubject, {
      callback: (error, message) => void (error === null && message.data.byteLength === 0 && lease.freed()),
    });
    this.#lease = {
      async [Symbol.asyncDispose]() {
        if (!connection.isClosed()) freed.unsubscribe();
        await lease[Symbol.asyncDispose]();
      },
    };
  }

  async #endLease(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    await lease?.[Symbol.asyncDispose]();
  }

  #active(): readonly ActiveSink[] {
    return this.#known
      .filter(({ isPaused }) => !isPaused)
      .map(({ workspace, sink, definition, generation }) => ({ workspace, sink, definition, generation }));
  }

  async #hold(lost: AbortSignal): Promise<void> {
    const { RunningSinks } = await import("./delivery/running-sinks.ts");
    const { settings, logOf, counts, causeOf, logger } = this.#deps;
    const { connection } = this.#deps.link.nats();
    const store = this.store();
    const deps = { connection, store, logOf, settings, times: this.#times, counts, causeOf, logger };
    await using running = new RunningSinks(deps);
    try {
      this.#running = running;
      await running.set(this.#active());
      await new Promise<void>((resolve) => {
        if (lost.aborted) resolve();
        lost.addEventListener("abort", () => resolve(), { once: true });
      });
    } finally {
      this.#running = undefined;
    }
  }
}

/** Removes everything of a sink. */
async function removeSink(store: SinkStore, of: { readonly workspace: string; readonly sink: string }): Promise<void> {
  await store.remove({ ...of, type: "sink" });
  await removeRest(store, of);
}

/** Removes what a sink has beside its definition. */
export async function removeRest(
  store: SinkStore,
  of: { readonly workspace: string; readonly sink: string },
): Promise<void> {
  for (const entry of await store.all(["control", "cursor", "status", "parked"], of)) await store.remove(entry);
}
