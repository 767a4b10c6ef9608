import type { PublishOutcome } from "@tapedeck/shared/log/log";
import { LogRefusedError } from "@tapedeck/shared/log/writing/jetstream-writer";
import type { Logger } from "@tapedeck/shared/service/logger";
import { startInterval, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { NatsConnection } from "nats";
import { LogAtQuotaError } from "../record/log-quota.ts";

export type PublishFailuresOptions = {
  /** Rejects when the log can't be asked. */
  readonly reach: () => Promise<unknown>;
  readonly logger: Logger;
  /** The free bytes of the disk that the log is on; undefined if they can't be determined. */
  readonly freeBytes?: () => Promise<number | undefined>;
  /** How long nothing may be refused, on a disk with room, until the log is considered well. Default 10 s. */
  readonly quietMs?: number;
};

const full = "nothing is recorded: the log's disk is full";
const stuck =
  "nothing is recorded: the log can be read but accepts nothing; its disk may be full (see what the nats-server logs)";

/** A disk with less has no room: a server that failed to write does not try again by itself. */
const leastBytes = 8 * 1024 * 1024;
/** With as much it has room again: as much as `tapedeck up` waits for before it starts its NATS anew. */
const roomBytes = 64 * 1024 * 1024;

/**
 * A lost answer is resolved within this time. A publish is abandoned after 2 s, so the second one in a row without an
 * answer is later than this, and people are informed within 5 s.
 */
const timeoutMs = 2_000;

/**
 * Reports why nothing gets into the event log: in the service's log once, however often and for how many sources it
 * occurs. It is over when something gets in. With nothing left to record, it is over when nothing was refused and the
 * disk had room for a while.
 */
export class PublishFailures implements Disposable {
  readonly #options: Required<PublishFailuresOptions>;
  #isAsking = false;
  #reported: string | undefined;
  /** The time of the first publish in a row that failed. */
  #since: number | undefined;
  /** The time of the last one, or of the last check of a disk without room. */
  #lastMet = 0;
  #isFull = false;
  #listener: (isFull: boolean) => void = () => {};
  #isStuck = false;
  /** The disk was full to this server, which takes nothing more, however much room there is, before it is started again. */
  #wasFull = false;
  /** Runs while there is a reason, and only then: a process in which nothing fails stays asleep. */
  #timer: Timer | undefined;
  #isDisposed = false;

  constructor(options: PublishFailuresOptions) {
    this.#options = { freeBytes: async () => undefined, quietMs: 10_000, ...options };
  }

  /** Why nothing gets into a log that can be asked, in one sentence; undefined when all is well, or was a moment ago. */
  get reason(): string | undefined {
    return this.#isFull ? full : this.#isStuck ? stuck : undefined;
  }

  /** It is for lack of room. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Calls the listener when the disk becomes full, also if it is already, and when that is over. */
  onFull(listener: (isFull: boolean) => void): void {
    this.#listener = listener;
    if (this.#isFull) listener(true);
  }

  /** A publish ended otherwise than acknowledged. */
  met(published: Exclude<PublishOutcome, { outcome: "acknowledged" }>): void {
    if (published.outcome === "wrong-sequence") return;
    // The log of one workspace is full by its settings, and has its own sentence.
    if (published.outcome === "refused" && published.cause instanceof LogAtQuotaError) return;
    this.#lastMet = performance.now();
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#since ??= performance.now();
    void this.#report(published.outcome === "refused" ? published.cause : undefined).finally(() => {
      this.#isAsking = false;
    });
  }

  /** A publish was acknowledged. */
  over(): void {
    this.#wasFull = false;
    this.#clear();
  }

  /**
   * A server other than before was started since, and may take what that one did not. Ends when the connection is closed.
   */
  async watchServer(nats: Pick<NatsConnection, "info" | "status">): Promise<void> {
    let server = nats.info?.server_id;
    for await (const { type } of nats.status()) {
      if (type !== "reconnect" || nats.info?.server_id === server) continue;
      server = nats.info?.server_id;
      this.over();
    }
  }

  #clear(): void {
    stopTimer(this.#timer);
    this.#timer = undefined;
    this.#reported = undefined;
    this.#since = undefined;
    this.#setFull(false);
    this.#isStuck = false;
  }

  #setFull(isFull: boolean): void {
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    this.#listener(isFull);
  }

  async #report(refusal: unknown): Promise<void> {
    const { reach, logger } = this.#options;
    const since = this.#since;
    const isWithoutRoom = (await this.#free()) < leastBytes;
    const isFull = this.#wasFull || isWithoutRoom || (refusal instanceof LogRefusedError && refusal.isFull);
    const err = await reach().then(
      () => refusal,
      (cause: unknown) => cause,
    );
    // Something was acknowledged meanwhile.
    if (since !== this.#since || since === undefined) return;
    this.#wasFull ||= isWithoutRoom;
    this.#setFull(this.#isFull || isFull);
    this.#isStuck ||= performance.now() - since > timeoutMs;
    if (this.reason !== undefined && !this.#isDisposed) {
      this.#timer ??= startInterval(() => void this.#checkRoom(), Math.min(1_000, this.#options.quietMs / 4)).unref();
    }
    const reason = this.#isFull ? full : err === undefined ? undefined : String(err);
    if (reason !== undefined && reason !== this.#reported) {
      logger.error({ err: err ?? new Error(reason) }, "the log accepts nothing now: items wait in the spill");
    }
    this.#reported = reason;
  }

  async #checkRoom(): Promise<void> {
    if (this.reason === undefined) return;
    const met = this.#lastMet;
    if ((await this.#free()) < roomBytes) this.#lastMet = performance.now();
    else if (met === this.#lastMet && performance.now() - met > this.#options.quietMs) this.#clear();
  }

  async #free(): Promise<number> {
    const free = await this.#options.freeBytes().catch(() => undefined);
    return free ?? Number.POSITIVE_INFINITY;
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    stopTimer(this.#timer);
  }
}
