import { type Filter, matches } from "@tapedeck/shared/filter/filter";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { HeldEvent, LogReader } from "@tapedeck/shared/log/log";
import { messagesBetween, type Offset } from "@tapedeck/shared/log/offset";
import { OutOfRangeError } from "@tapedeck/shared/log/out-of-range";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { SinkKey, SinkName, SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { LinkedController } from "@tapedeck/shared/sync/linked-controller";
import { ulid } from "ulid";
import { cursorIn, definitionIn, type SendOutcome, type SinkDefinition, type SinkStatus } from "../definition.ts";
import type { CauseOf, SinkEvent } from "../format/format.ts";
import { formatOf } from "../format/formats.ts";
import type { SinkSettings } from "../settings.ts";
import { HttpTarget } from "../target/http-target.ts";
import { outcomeOf, type Refused } from "./answers.ts";
import { Delivery } from "./delivery.ts";
import { Gatherer } from "./gatherer.ts";
import { Parking, stillParked } from "./parking.ts";
import { SinkCursor } from "./sink-cursor.ts";
import { continued, offsetAfterLoss, startOffset } from "./start-offset.ts";
import type { SinkTimes } from "./times.ts";

export type SinkCounts = {
  readonly delivered: (sink: SinkName, events: number) => void;
  readonly attempted: (sink: SinkName, outcome: SendOutcome) => void;
};

export type RunningSinkDeps = {
  readonly causeOf: CauseOf;
  readonly store: SinkStore;
  /** The log of a workspace, as soon as it is open. @throws TapedeckError not_ready */
  readonly logOf: (workspace: string) => Promise<LogReader>;
  readonly settings: Pick<SinkSettings, "allowed" | "page">;
  readonly times: SinkTimes;
  readonly counts: SinkCounts;
  readonly logger: Logger;
};

export type SinkFigures = { readonly lagEvents: number; readonly lagSeconds: number; readonly parked: number };

type Delivered = { readonly cursor: SinkCursor; readonly delivery: Delivery };

/** A sink that was removed is soon disposed, unless somebody puts it back. */
const goneMs = 5_000;

/** An event that was recorded before something was due may come so much later. */
const lateMs = 1_000;

/** Delivers one sink, until it is disposed. */
export class RunningSink implements AsyncDisposable {
  readonly #name: SinkName;
  readonly #definition: SinkDefinition;
  readonly #deps: RunningSinkDeps;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  /** What the present pass over the log has. */
  #log: LogReader | undefined;
  #cursor: SinkCursor | undefined;
  #parking: Parking | undefined;
  /** The events that are being delivered. */
  #inHand: readonly HeldEvent[] = [];
  /** Since when a request is tried that was due, and belongs to no event. */
  #overdueSince: number | undefined;
  /** The end of the log is reached, and everything before it was delivered. */
  #isIdle = false;
  #failure: (Pick<SinkStatus, "failure"> & { readonly error: string; readonly since: Date }) | undefined;
  #isWaiting = false;
  #reported = "";
  #isReportedBehind = false;
  #reporting: Promise<void> = Promise.resolve();

  constructor(name: SinkName, definition: SinkDefinition, deps: RunningSinkDeps) {
    this.#name = name;
    this.#definition = definition;
    this.#deps = deps;
    this.#running = this.#run();
  }

  /** How far it is behind. */
  async figures(): Promise<SinkFigures> {
    const parked = this.#parking?.count ?? 0;
    if (this.#isIdle || this.#log === undefined || this.#cursor === undefined) {
      return { lagEvents: 0, lagSeconds: secondsSince(this.#overdueSince), parked };
    }
    const { offset } = this.#cursor;
    const { lastOffset } = await this.#log.bounds();
    const recordedAt = this.#inHand
      .find((held) => held.offset > offset)
      ?.decode()
      ?.recordedAt.getTime();
    return {
      lagEvents: Math.max(0, messagesBetween(offset, lastOffset)),
      lagSeconds: secondsSince(recordedAt),
      parked,
    };
  }

  /** Stores how it is, if that has changed. Never rejects. */
  report(): Promise<void> {
    // One after the other, so that what is written last is the newest.
    this.#reporting = this.#reporting.then(() => this.#report());
    return this.#reporting;
  }

  async #report(): Promise<void> {
    try {
      const { lagEvents, lagSeconds } = await this.figures();
      const status: Omit<SinkStatus, "at"> = {
        state: this.#state(),
        lagEvents,
        lagSeconds,
        ...(this.#failure && { ...this.#failure, since: this.#failure.since.toISOString() }),
      };
      const text = JSON.stringify(status);
      this.#isReportedBehind = lagEvents > 0;
      if (text === this.#reported) return;
      await this.#deps.store.put(this.#key("status"), { ...status, at: new Date().toISOString() });
      this.#reported = text;
    } catch {
      // The next report says it.
    }
  }

  /** Reports, and counts what is parked again: some of it may have been retried or dropped. */
  async recount(): Promise<void> {
    if (this.#parking !== undefined && this.#parking.count > 0) await this.#parking.recount().catch(() => {});
    await this.report();
  }

  /** A session or a developer is being erased: what was parked of it goes. */
  async erased(): Promise<void> {
    if (this.#log === undefined || (this.#parking?.count ?? 0) === 0) return;
    await this.#dropGone(this.#log);
    await this.recount();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#reporting;
  }

  async #run(): Promise<void> {
    const { times, logger } = this.#deps;
    const { signal } = this.#stop;
    const retry = backoff(times.retryMs, 5_000);
    while (!signal.aborted) {
      try {
        await this.#pass(signal);
        retry.reset();
      } catch (err) {
        if (signal.aborted) return;
        if (!this.#isWaiting) logger.warn({ err, ...this.#name }, "a sink can't be delivered now");
        this.#isWaiting = true;
        this.#failed(err instanceof Error ? err.message : String(err));
        await delay(retry.next(), signal);
      }
    }
  }

  /** From the cursor on, until somebody else has written it, or reading fails. */
  async #pass(stopped: AbortSignal): Promise<void> {
    const { logOf, times, settings, counts, causeOf } = this.#deps;
    const { workspace, sink } = this.#name;
    const { mode, live = false, template, secret, headers, target: url, filter } = this.#definition;
    const log = await logOf(workspace);
    let delivery: Delivery | undefined;
    const opened = await this.#openCursor(log, (offset) => delivery?.memory(offset));
    if (opened === undefined) return delay(goneMs, stopped);
    const { memory } = opened;
    await using cursor = opened.cursor;
    using target = new HttpTarget({ url, allowed: settings.allowed, timeoutMs: times.requestMs });
    const parking = await this.#openParking(log);
    [this.#log, this.#cursor, this.#parking, this.#isIdle, this.#inHand] = [log, cursor, parking, false, []];
    if (this.#isWaiting) this.#failure = undefined;
    this.#isWaiting = false;
    void this.report();
    const over = AbortSignal.any([stopped, cursor.lost]);
    const format = formatOf(this.#definition);
    const formatted = {
      workspace,
      name: sink,
      mode,
      filter,
      live,
      secret,
      epoch: log.epoch,
      page: settings.page,
      template,
    };
    const ofFormat: Filter = format.kinds === undefined ? {} : { kinds: format.kinds(formatted) };
    const read = filter.kinds === undefined ? { ...filter, ...ofFormat } : filter;
    delivery = new Delivery({
      format,
      opening: { memory, causeOf, intervalMs: times.messageMs, lateMs: times.lateMs },
      reader: log,
      sink: formatted,
      headers,
      target,
      times,
      listener: {
        delivered: (offset, accepted) => {
          cursor.delivered(offset);
          this.#accepted(accepted, parking);
        },
        attempted: (outcome) => counts.attempted(this.#name, outcome),
        failing: (refused) => this.#failing(refused),
        park: async (...parked) => {
          if (parking.isFull) void this.report();
          await parking.park(...parked);
        },
      },
    });
    const left = new AbortController();
    const reached = (offset: Offset) => gatherer.reached(offset);
    const batches = log.followBatches(
      { afterOffset: cursor.offset, subjects: toSubjects(read, workspace) },
      { signal: AbortSignal.any([over, left.signal]), reached, isPatient: true },
    );
    const gatherer = new Gatherer(batches, {
      gatherMs: mode === "batched" ? times.gatherMs : 0,
      passed: (offset, isEnd) => {
        this.#isIdle = isEnd;
        cursor.passed(offset);
        if (isEnd && this.#isReportedBehind) void this.report();
      },
      matches: (held) => {
        this.#isIdle = false;
        const recorded = held.decode();
        if (recorded === undefined || !matches(filter, recorded.event)) return false;
        return matches(ofFormat, recorded.event) && (format.needs?.(recorded.event) ?? true);
      },
    });
    try {
      for (;;) {
        const events = await this.#next(gatherer, { cursor, delivery }, over);
        if (events === undefined) return;
        this.#inHand = events;
        await delivery.deliver(events, over);
        // To ask for more would say that these are delivered.
        if (over.aborted) return;
        this.#inHand = [];
      }
    } finally {
      left.abort();
      await batches.return().catch(() => {});
    }
  }

  /** What is parked. Some of it may have been erased, or have expired, while nobody delivered. */
  async #openParking(log: LogReader): Promise<Parking> {
    const parking = await Parking.open(this.#deps.store, this.#name);
    if (parking.count === 0) return parking;
    await this.#dropGone(log);
    await parking.recount();
    return parking;
  }

  /** What was parked of events that the log no longer has. Never rejects. */
  async #dropGone(log: LogReader): Promise<void> {
    // After a failure the next pass does it, or who lists them.
    await stillParked(this.#deps.store, log, this.#name, this.#stop.signal).catch(() => {});
  }

  /** The next events; undefined at the end. What is due is sent while there are none. */
  async #next(gatherer: Gatherer, { cursor, delivery }: Delivered, over: AbortSignal) {
    const next = this.#gathered(gatherer, cursor);
    for (;;) {
      const due = delivery.dueAt();
      if (due === undefined) {
        this.#overdueSince = undefined;
        return next;
      }
      // While it is behind, events decide: their times are earlier than now. Where the log's clock is ahead of this one, they are later.
      const untilDueMs = Math.min(due - Date.now(), this.#deps.times.messageMs);
      const waitMs = Math.max(untilDueMs + lateMs, this.#isIdle ? 0 : lateMs);
      using isOver = new LinkedController(over);
      const events = await Promise.race([next, delay(waitMs, isOver.signal).then(() => "due" as const)]);
      isOver.abort();
      if (events !== "due") {
        this.#overdueSince = undefined;
        return events;
      }
      if (over.aborted) return next;
      if (!this.#isIdle) continue;
      this.#overdueSince ??= Date.now();
      if (!(await delivery.deliverDue(Math.max(due, Date.now() - lateMs), over))) continue;
      this.#overdueSince = undefined;
      cursor.remembered();
    }
  }

  /** Undefined at the end. Goes on after what the log has dropped. */
  async #gathered(gatherer: Gatherer, cursor: SinkCursor): Promise<readonly HeldEvent[] | undefined> {
    try {
      return await gatherer.next();
    } catch (error) {
      if (!(error instanceof OutOfRangeError)) throw error;
      cursor.delivered(offsetAfterLoss(error));
      this.#deps.logger.warn({ err: error, ...this.#name }, "a sink goes on after events that the log no longer has");
      return undefined;
    }
  }

  /** The cursor, and what its format remembered there, if the log is still the same. Undefined: the sink was removed. */
  async #openCursor(log: LogReader, memoryAt: (offset: Offset) => string | undefined) {
    const { store, times } = this.#deps;
    const key = this.#key("cursor");
    const written = (offset: Offset) => formatPosition({ epoch: log.epoch, offset });
    for (;;) {
      const { value, revision } = await store.get(key);
      const stored = cursorIn(value);
      if (stored !== undefined) {
        const offset = continued(log, stored.position);
        const { generation } = stored;
        const isSame = stored.position === written(offset);
        return {
          cursor: new SinkCursor({ store, key, revision, generation, offset, written, memory: memoryAt, times }),
          memory: isSame ? stored.memory : undefined,
        };
      }
      if (await this.#isRemoved()) return undefined;
      const offset = await startOffset(log, this.#definition.start);
      const first = { position: written(offset), generation: ulid(), at: new Date().toISOString() };
      await store.put(key, first, { revision });
    }
  }

  /** Its definition goes before its cursor: without this it would begin again at its start. One of the settings is not stored. */
  async #isRemoved(): Promise<boolean> {
    if (this.#definition.epoch === undefined) return false;
    return definitionIn((await this.#deps.store.get(this.#key("sink"))).value) === undefined;
  }

  #accepted(events: readonly SinkEvent[], parking: Parking): void {
    this.#deps.counts.delivered(this.#name, events.length);
    void parking.accepted(events);
  }

  #failing(refused: Refused | undefined): void {
    if (refused !== undefined) this.#failed(refused.error, outcomeOf(refused) === "away" ? "away" : "refused");
    else if (this.#failure !== undefined) {
      this.#failure = undefined;
      void this.report();
    }
  }

  #failed(error: string, failure?: SinkStatus["failure"]): void {
    const isNew = this.#failure === undefined || this.#failure.failure !== failure;
    this.#failure = { error, since: this.#failure?.since ?? new Date(), ...(failure && { failure }) };
    if (isNew) void this.report();
  }

  #state(): SinkStatus["state"] {
    if (this.#isWaiting) return "waiting";
    if (this.#failure === undefined) return "delivering";
    return this.#parking?.isFull === true ? "full" : "retrying";
  }

  #key(type: SinkKey["type"]): SinkKey {
    return { ...this.#name, type };
  }
}

function secondsSince(ms: number | undefined): number {
  return ms === undefined ? 0 : Math.max(0, Math.round((Date.now() - ms) / 1_000));
}
