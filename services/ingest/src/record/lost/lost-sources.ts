import type { LogSurvey, RecordedEvent } from "@tapedeck/shared/log/log";
import { lifecycleSubjects } from "@tapedeck/shared/log/subjects";
import type { Logger } from "@tapedeck/shared/service/logger";
import { recorderTimeouts } from "@tapedeck/shared/service/peer-liveness";
import type { SourceName } from "@tapedeck/shared/source";
import { Semaphore } from "@tapedeck/shared/sync/semaphore";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import type { Examined, LastSeen } from "./silent-source.ts";

export type LostSourcesOptions = {
  /** The time after which a silent session is presumed to be over. */
  readonly lostAfterMs: number;
  /** The time after which a source is reported as lost. Default: 15 s, or half of the time above. */
  readonly noticeMs?: number | undefined;
  readonly logger: Logger;
  /**
   * Examines the log of a source that no tap pushes, and adds the events that are missing; undefined if a tap pushes
   * it. Rejects while the log is unavailable.
   */
  readonly examine: (source: SourceName, lastSeen: LastSeen) => Promise<Examined | undefined>;
};

const unknown: LastSeen = { since: undefined, elsewhere: false };
/** At start there may be many. */
const examinedAtOnce = 4;

/**
 * Watches over sources that no tap pushes: reports them as lost when their tap does not come back, and ends their
 * sessions after too long an absence. All its knowledge beside the time is in the log.
 */
export class LostSources implements AsyncDisposable {
  readonly #options: LostSourcesOptions;
  readonly #noticeMs: number;
  readonly #timers = new Map<SourceName, Timer>();
  readonly #lost = new Map<SourceName, Timestamp>();
  readonly #running = new Set<Promise<void>>();
  readonly #semaphore = new Semaphore(examinedAtOnce);
  readonly #closing = new AbortController();

  constructor(options: LostSourcesOptions) {
    this.#options = options;
    this.#noticeMs = options.noticeMs ?? Math.min(recorderTimeouts.noticeMs, options.lostAfterMs / 2);
  }

  /** The sources whose tap is awaited, and since when they have been silent. */
  get lost(): ReadonlyMap<SourceName, Timestamp> {
    return this.#lost;
  }

  /** A tap pushes the source. */
  began(source: SourceName): void {
    stopTimer(this.#timers.get(source));
    this.#timers.delete(source);
    this.#lost.delete(source);
  }

  /** The push has ended, for whatever reason. `elsewhere`: because another ingest records the source. */
  ended(source: SourceName, { elsewhere }: { readonly elsewhere: boolean }): void {
    this.#examineIn(this.#noticeMs, source, { since: timestampNow(), elsewhere });
  }

  /**
   * Searches for sources that an ingest before this one has left. Their taps have the time to come back, as after any
   * other break.
   */
  async survey(log: LogSurvey): Promise<void> {
    const lives = new Map<string, RecordedEvent[]>();
    for await (const recorded of log.lastOfEach(lifecycleSubjects, this.#closing.signal)) {
      const { source } = recorded.event;
      lives.set(source, [...(lives.get(source) ?? []), recorded]);
    }
    for (const [source, lasts] of lives) {
      if (mayGoOn(lasts)) this.#examineIn(this.#noticeMs, source as SourceName, unknown);
    }
  }

  /** These sources are no longer in any log. */
  forget(isRemoved: (source: SourceName) => boolean): void {
    for (const source of [...this.#timers.keys(), ...this.#lost.keys()].filter(isRemoved)) this.began(source);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    for (const timer of this.#timers.values()) stopTimer(timer);
    await Promise.all(this.#running);
  }

  #examineIn(ms: number, source: SourceName, lastSeen: LastSeen): void {
    if (this.#closing.signal.aborted) return;
    stopTimer(this.#timers.get(source));
    const timer = startTimer(() => {
      if (this.#timers.get(source) === timer) this.#timers.delete(source);
      const running = this.#examine(source, lastSeen).finally(() => this.#running.delete(running));
      this.#running.add(running);
    }, ms).unref();
    this.#timers.set(source, timer);
  }

  async #examine(source: SourceName, lastSeen: LastSeen): Promise<void> {
    const { examine, logger } = this.#options;
    const release = await this.#semaphore.acquire(this.#closing.signal);
    if (release === undefined) return;
    try {
      const found = await examine(source, lastSeen);
      // A push has begun meanwhile, and its end will be reported.
      if (found === undefined || this.#timers.has(source)) return;
      if (found.lostSince === undefined) this.#lost.delete(source);
      else this.#lost.set(source, found.lostSince);
      const { elsewhere, again, lostSince: since = lastSeen.since } = found;
      if (elsewhere !== undefined) this.#examineIn(this.#noticeMs, source, { since: elsewhere, elsewhere: true });
      else if (again !== undefined) this.#examineIn(again.ms ?? this.#noticeMs, source, { since, elsewhere: false });
    } catch (err) {
      if (this.#closing.signal.aborted) return;
      logger.warn({ source, err }, "can't determine whether this source is lost: the log is unavailable");
      this.#examineIn(this.#noticeMs, source, lastSeen);
    } finally {
      release();
    }
  }
}

/** By the last events of its subjects: false where the session has ended, and no connection has been made since. */
function mayGoOn(lasts: readonly RecordedEvent[]): boolean {
  const last = (noun: string) => lasts.find(({ event }) => event.kind.startsWith(`${noun}.`));
  const session = last("session");
  const upstream = last("upstream");
  if (upstream === undefined) return false;
  if (upstream.event.kind !== "upstream.lost")
    return session === undefined || !isEnd(session) || upstream.offset > session.offset;
  return session !== undefined && !isEnd(session);
}

function isEnd({ event: { kind } }: RecordedEvent): boolean {
  return kind === "session.ended" || kind === "session.lost" || kind === "session.erased";
}
