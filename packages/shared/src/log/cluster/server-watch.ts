import type { StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import type { Logger } from "../../service/logger.ts";
import { abortable } from "../../sync/abortable.ts";
import { backoff, delay } from "../../sync/delay.ts";
import { Notifier } from "../../sync/notifier.ts";
import { endsStream } from "../subjects.ts";
import { isOfLeader } from "./leader-info.ts";

export type ServerWatchOptions = {
  /** Whether settings name more than one server. A server may also name others of its cluster. */
  readonly hasOthers: boolean;
  readonly logger: Logger;
  readonly times?: Partial<ServerWatchTimes>;
};

type ServerWatchTimes = {
  /** Time between two requests. */
  readonly everyMs: number;
  /** How long an answer about the log may take. */
  readonly timeoutMs: number;
  /** How long the server itself may take to answer a ping. */
  readonly pingMs: number;
};

const defaultTimes: ServerWatchTimes = { everyMs: 1_000, timeoutMs: 2_000, pingMs: 750 };

/** One request may be lost in an election. */
const failuresToLeave = 2;

/** A process that was busy itself sees the first answer too late, and the second in time. */
const pingsToLeave = 2;

/** A ping may take this many times as long as the slowest recent one, on a machine that is busy all the time. */
const pingSpread = 4;
const slowestFade = 0.9;
const longestPingMs = 5_000;

/**
 * Leaves a server that is cut off from its cluster. Such a server keeps its clients and answers their pings, but no request
 * to the log gets through, and a client would stay until the cluster is whole again. A server that vanished without closing
 * its connections answers no ping either, so it is left sooner; the library's own pings take half a minute.
 */
export class ServerWatch implements AsyncDisposable {
  readonly #nats: NatsConnection;
  readonly #options: ServerWatchOptions;
  readonly #times: ServerWatchTimes;
  readonly #over = new AbortController();
  /** Rings when the connection may know other servers than before, and when it is closed. */
  readonly #serversChanged = new Notifier();
  readonly #running: Promise<void>;
  /** The durations of recent pings. */
  #slowestMs = 0;

  constructor(nats: NatsConnection, options: ServerWatchOptions) {
    this.#nats = nats;
    this.#options = options;
    this.#times = { ...defaultTimes, ...options.times };
    void this.#followServers();
    this.#running = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    this.#serversChanged.ring();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { everyMs } = this.#times;
    // If no server can answer, because the log has lost its quorum, all are tried, but less and less often.
    const retryDelays = backoff(everyMs, 30_000);
    for (let failures = 0; !this.#over.signal.aborted && !this.#nats.isClosed(); ) {
      const changed = this.#serversChanged.next();
      if (!this.#hasOthers()) {
        // A server alone can't be left, so it is not asked either: the process stays asleep.
        await changed;
        continue;
      }
      await delay(everyMs, this.#over.signal);
      const isThere = await this.#answersPings();
      if (isThere && (await this.#isInTouch())) {
        failures = 0;
        retryDelays.reset();
      } else if ((!isThere || ++failures >= failuresToLeave) && !this.#over.signal.aborted) {
        failures = 0;
        const why = isThere ? "does not reach the log's others" : "does not answer";
        this.#options.logger.warn({ server: this.#nats.getServer() }, `this nats-server ${why}: trying another one`);
        // A connection that was closed meanwhile needs no other server.
        await this.#nats.reconnect().catch(() => {});
        await delay(retryDelays.next(), this.#over.signal);
      }
    }
  }

  async #followServers(): Promise<void> {
    for await (const { type } of this.#nats.status()) {
      if (type === "update" || type === "reconnect") this.#serversChanged.ring();
    }
    this.#serversChanged.ring();
  }

  #hasOthers(): boolean {
    return this.#options.hasOthers || (this.#nats.info?.connect_urls?.length ?? 0) > 1;
  }

  async #answersPings(): Promise<boolean> {
    const timeoutMs = Math.max(this.#times.pingMs, Math.min(longestPingMs, pingSpread * this.#slowestMs));
    for (let request = 0; request < pingsToLeave; request++) {
      const since = performance.now();
      // A connection that is away is dialled by the library, so there is nothing to leave.
      const answered = this.#nats.rtt().then(
        () => true,
        () => true,
      );
      if (await Promise.race([answered, delay(timeoutMs, this.#over.signal).then(() => false)])) {
        this.#slowestMs = Math.max(performance.now() - since, this.#slowestMs * slowestFade);
        return true;
      }
    }
    return false;
  }

  /**
   * The ends have as many replicas as the logs. Only the answer of their leader shows that the server reaches the others: one that
   * is cut off answers from its own replica.
   */
  async #isInTouch(): Promise<boolean> {
    const { timeoutMs } = this.#times;
    const request = this.#nats.request(`$JS.API.STREAM.INFO.${endsStream}`, "", { timeout: timeoutMs });
    try {
      const info = (await abortable(request, this.#over.signal)).json<
        StreamInfo | { readonly error: { readonly err_code: number } }
      >();
      return "error" in info ? info.error.err_code === streamNotFound : isOfLeader(info);
    } catch {
      request.catch(() => {}); // its answer may come after the last wait for it
      return this.#over.signal.aborted;
    }
  }
}

const streamNotFound = 10059;
