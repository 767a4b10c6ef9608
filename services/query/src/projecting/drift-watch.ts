import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type { LogReader } from "@tapedeck/shared/log/log";
import { adoptSubject, channelFilter, eventSubject, everyObservedSubject } from "@tapedeck/shared/log/subjects";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { SourceName } from "@tapedeck/shared/source";
import { pause } from "@tapedeck/shared/sync/delay";
import { unlessAborted } from "@tapedeck/shared/sync/unless-aborted";
import type { NatsConnection } from "nats";
import type { ApiDeps } from "../api/deps.ts";
import { readConsistently } from "../db/read.ts";
import type { Fold } from "../views/states/fold.ts";
import { foldFor } from "../views/states/states.ts";

export type DriftWatchOptions = ApiDeps & {
  readonly logger: Logger;
  /** An upstream's answer was held against the folded state. */
  readonly compared: (source: string, differs: boolean) => void;
};

/**
 * Our check of truth in the field: holds what upstreams answer about themselves against the folded state. Where the two
 * differ (a call past Tapedeck, that no event tells), it is counted, and record is asked to adopt the answer.
 */
export type DriftWatch = AsyncDisposable & {
  /** Listens on this connection until it is closed. */
  readonly listen: (nats: Pick<NatsConnection, "subscribe" | "publish">) => void;
};

/*
 * An answer can't be tied to a place in the events: the upstream made it somewhere between question and answer, and
 * events travel on other streams. So it counts only in silence: nothing for a while before the tap had it (what it
 * lacks would have come by then, as the upstream changes its state before it tells the event), and nothing from then
 * until a while later (what it knows already would have been told by then). Then there is one place only that it can
 * belong to. Asking for the same difference in two answers running would do as well, but would miss what the next loop
 * mends, and the answers at a loop's end, when upstreams are asked, nearly always stand in silence.
 */
const silenceMs = { before: 200, after: 1_000 } as const;
/** For the tables to come to the log's end, and for the log to answer. */
const patienceMs = 2_000;
/** Answers that wait at once; more are not looked at. */
const mostWaiting = 1_000;
/** Differences that are remembered as told. */
const mostTold = 1_000;

export function driftWatch(options: DriftWatchOptions): DriftWatch {
  const { database, log, progress, folds, logger, compared } = options;
  const stop = new AbortController();
  const waiting = new Set<Promise<void>>();
  const told = new Set<string>();

  async function check(message: Uint8Array, nats: Pick<NatsConnection, "publish">): Promise<void> {
    const observed = Observed.decode(message);
    const fold = foldFor(folds, observed);
    await pause(silenceMs.after, stop.signal);
    if (stop.signal.aborted || fold === undefined) return;
    const state = await stateAtRest(observed, fold);
    const differences = state === undefined ? undefined : fold.drift(state, observed);
    if (differences === undefined) return;
    compared(observed.source, differences.length > 0);
    if (differences.length === 0) return;
    tell(observed, differences);
    // What else there is, such as logs, never touches the state.
    const names = [...fold.channels, "tapedeck"];
    const ordinals = Object.fromEntries(names.map((name) => [name, observed.ordinals[name] ?? 0n]));
    nats.publish(adoptSubject(observed.source as SourceName), Observed.encode({ ...observed, ordinals }).finish());
  }

  /** The folded state, if it is of the very place that the answer belongs to. */
  async function stateAtRest({ source, session, ...answer }: Observed, fold: Fold): Promise<unknown> {
    const reader = log();
    const { lastSeq } = await reader.bounds();
    if (!(await unlessAborted(progress.reached(lastSeq, patienceMs), stop.signal))) return undefined;
    const row = await readConsistently(database(), (tx) =>
      tx
        .selectFrom("fold_states")
        .select("state")
        .where("session", "=", session)
        .where("fold_version", "=", fold.version)
        .executeTakeFirst(),
    );
    // Read after the state: if this one came before the answer and in time, so did all that was folded.
    const last = await lastThatMatters(reader, source as SourceName, fold);
    if (row === undefined || last === undefined || last.session !== session) return undefined;
    const isBefore = last.ordinal <= (answer.ordinals[last.channel] ?? 0n);
    const isSilent = ms(answer.observed_at) - ms(last.observed_at) >= silenceMs.before;
    return isBefore && isSilent ? JSON.parse(row.state) : undefined;
  }

  /** Of the channels that are folded, and of the control calls through us, which touch the state too. */
  async function lastThatMatters(reader: LogReader, source: SourceName, fold: Fold): Promise<Event | undefined> {
    const calls = eventSubject(source, "tapedeck", "control.requested");
    const subjects = [...fold.channels.map((channel) => channelFilter(source, channel)), calls];
    const seq = await reader.lastMatch(subjects);
    if (seq === 0) return undefined;
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(patienceMs)]);
    for await (const { event } of reader.history({ afterSeq: seq - 1, subjects }, seq, signal)) return event;
    return undefined;
  }

  /** The same differences of a session once. */
  function tell({ source, session }: Observed, differences: readonly string[]): void {
    const key = JSON.stringify([session, differences]);
    if (told.has(key)) return;
    told.add(key);
    const [oldest] = told;
    if (told.size > mostTold && oldest !== undefined) told.delete(oldest);
    logger.warn(
      { source, session, differences },
      "fold_drift: the upstream's own state is not what its events fold to",
    );
  }

  function hear(bytes: Uint8Array, nats: Pick<NatsConnection, "publish">): void {
    if (waiting.size >= mostWaiting || stop.signal.aborted) return;
    // Log or database are away, or it can't be read: then this answer is not compared.
    const checked = check(bytes, nats)
      .catch((err: unknown) => logger.debug({ err }, "an upstream's answer could not be compared"))
      .finally(() => waiting.delete(checked));
    waiting.add(checked);
  }

  return {
    listen: (nats) => {
      nats.subscribe(everyObservedSubject, {
        callback: (error, message) => {
          if (error === null) hear(message.data, nats);
        },
      });
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(waiting);
    },
  };
}

function ms(moment: Observed["observed_at"]): number {
  return moment === undefined ? Number.NaN : Number(moment.seconds) * 1_000 + moment.nanos / 1e6;
}
