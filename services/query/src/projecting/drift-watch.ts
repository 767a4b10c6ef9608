import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { LogReader } from "@tapedeck/shared/log/log";
import { logStart, messagesBefore } from "@tapedeck/shared/log/offset";
import { adoptSubject, channelFilter, eventSubject, everyObservedSubject } from "@tapedeck/shared/log/subjects";
import { ownValue } from "@tapedeck/shared/own-value";
import type { Logger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { delay } from "@tapedeck/shared/sync/delay";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import type { NatsConnection } from "nats";
import type { ApiDeps } from "../api/deps.ts";
import { readConsistently } from "../db/read.ts";
import type { Fold, Folds } from "../views/states/fold.ts";
import { foldFor } from "../views/states/states.ts";

export type DriftWatchOptions = {
  readonly depsOf: (workspace: string) => Promise<Pick<ApiDeps, "database" | "log" | "progress">>;
  readonly folds: Folds;
  readonly logger: Logger;
  /** Called for each answer of an upstream that was compared with the folded state. */
  readonly onCompared: (source: string, differs: boolean) => void;
};

/*
 * An answer can't be tied to a position in the events: the upstream made it somewhere between question and answer, and
 * events travel on other streams. So it counts only in silence. No event may precede the tap's receipt of the answer by
 * less than a while: the upstream changes its state before it emits the event, so an event that the answer lacks would
 * have come by then. And no event may follow for another while: an event that the answer includes would have come by
 * then. Exactly one position remains that the answer can belong to. Requiring the same difference in two consecutive
 * answers would also work, but would miss what the next loop repairs. Upstreams are asked at the end of a loop, and those
 * answers are nearly always in silence.
 */
const silenceMs = { before: 200, after: 1_000 } as const;
/**
 * The time for the tables to reach the log's end, and for the log to answer. An answer that is compared late is compared
 * all the same: what counts is what was recorded up to then.
 */
const timeoutMs = 30_000;
/** Answers that wait at once; further ones are dropped. */
const maxWaiting = 1_000;
/** Reported differences that are remembered. */
const maxReported = 1_000;

type AdoptChannel = Pick<NatsConnection, "publish">;

/**
 * Checks the folded state in production: compares it with what upstreams answer about themselves. A difference means a
 * change that no event reports, such as a call that bypasses Tapedeck. It is counted, and record is asked to adopt the
 * answer.
 */
export class DriftWatch implements AsyncDisposable {
  readonly #options: DriftWatchOptions;
  readonly #stop = new AbortController();
  readonly #waiting = new Set<Promise<void>>();
  readonly #reported = new Set<string>();

  constructor(options: DriftWatchOptions) {
    this.#options = options;
  }

  /** Listens on this connection until it is closed, or this is disposed. */
  listen(nats: AdoptChannel & Pick<NatsConnection, "subscribe">): Disposable {
    const subscription = nats.subscribe(everyObservedSubject, {
      callback: (error, message) => {
        if (error === null) this.#receive(message.data, nats);
      },
    });
    return { [Symbol.dispose]: () => subscription.unsubscribe() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#waiting);
  }

  #receive(message: Uint8Array, nats: AdoptChannel): void {
    if (this.#waiting.size >= maxWaiting || this.#stop.signal.aborted) return;
    const { logger } = this.#options;
    // Without log or database, or if it can't be decoded, this answer is not compared.
    const compared = this.#compare(message, nats)
      .catch((err: unknown) => logger.debug({ err }, "an upstream's answer could not be compared"))
      .finally(() => this.#waiting.delete(compared));
    this.#waiting.add(compared);
  }

  async #compare(message: Uint8Array, nats: AdoptChannel): Promise<void> {
    const { folds, onCompared } = this.#options;
    const observed = Observed.decode(message);
    const fold = foldFor(folds, observed);
    await delay(silenceMs.after, this.#stop.signal);
    if (this.#stop.signal.aborted || fold === undefined) return;
    const state = await this.#stateAtRest(observed, fold);
    const differences = state === undefined ? undefined : fold.drift(state, observed);
    if (differences === undefined) return;
    onCompared(observed.source, differences.length > 0);
    if (differences.length === 0) return;
    this.#report(observed, differences);
    // Other channels, such as logs, never touch the state.
    const names = [...fold.channels, "tapedeck"];
    const ordinals = Object.fromEntries(names.map((name) => [name, ownValue(observed.ordinals, name) ?? 0n]));
    nats.publish(adoptSubject(observed.source as SourceName), Observed.encode({ ...observed, ordinals }).finish());
  }

  /** The folded state at exactly the position that the answer belongs to; undefined: there is no such state. */
  async #stateAtRest({ source, session, ...answer }: Observed, fold: Fold): Promise<unknown> {
    const { workspace } = sourceParts(source as SourceName);
    const { database, log, progress } = await this.#options.depsOf(workspace);
    const reader = log();
    const { lastOffset } = await reader.bounds();
    if (!(await abortable(progress.reached(lastOffset, timeoutMs), this.#stop.signal))) return undefined;
    const row = await readConsistently(database(), workspace, (tx) =>
      tx
        .selectFrom("fold_states")
        .select("state")
        .where("session", "=", session)
        .where("fold_version", "=", fold.version)
        .executeTakeFirst(),
    );
    // Read after the state: if this event precedes the answer in time, so does every folded event.
    const last = await this.#lastRelevantEvent(reader, source as SourceName, fold);
    if (row === undefined || last === undefined || last.session !== session) return undefined;
    const isBefore = last.ordinal <= (ownValue(answer.ordinals, last.channel) ?? 0n);
    const isSilent = millisecondsOf(answer.observed_at) - millisecondsOf(last.observed_at) >= silenceMs.before;
    return isBefore && isSilent ? JSON.parse(row.state) : undefined;
  }

  /** The last event of the folded channels, or of the control calls through Tapedeck, which touch the state too. */
  async #lastRelevantEvent(reader: LogReader, source: SourceName, fold: Fold): Promise<Event | undefined> {
    const calls = eventSubject(source, ownChannel, "control.requested");
    const subjects = [...fold.channels.map((channel) => channelFilter(source, channel)), calls];
    const end = await reader.lastMatch(subjects);
    const signal = AbortSignal.any([this.#stop.signal, timeoutSignal(timeoutMs)]);
    // The last message that may hold one need not: it may hold other channels only.
    for (let messages = 1; !signal.aborted; messages *= 8) {
      const from = { afterOffset: messagesBefore(end, messages), subjects };
      let last: Event | undefined;
      for await (const { event } of reader.history(from, end, signal)) last = event;
      if (last !== undefined || from.afterOffset === logStart) return last;
    }
    return undefined;
  }

  /** Logs the same differences of a session once. */
  #report({ source, session }: Observed, differences: readonly string[]): void {
    const key = JSON.stringify([session, differences]);
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    const [oldest] = this.#reported;
    if (this.#reported.size > maxReported && oldest !== undefined) this.#reported.delete(oldest);
    this.#options.logger.warn(
      { source, session, differences },
      "fold_drift: the upstream's own state is not what its events fold to",
    );
  }
}

function millisecondsOf(timestamp: Observed["observed_at"]): number {
  return timestamp === undefined ? Number.NaN : Number(timestamp.seconds) * 1_000 + timestamp.nanos / 1e6;
}
