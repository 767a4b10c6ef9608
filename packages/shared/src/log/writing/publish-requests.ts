import { type Msg, type MsgHdrs, type NatsConnection, NoRespondersError, PermissionViolationError } from "nats";
import { newInbox } from "../../service/nats.ts";
import { startInterval, stopTimer, type Timer } from "../../sync/timers.ts";

/** How often requests are checked for their timeouts. */
const checkMs = 100;

type Waiting = {
  readonly subject: string;
  /** By `performance.now()`. */
  readonly endsAt: number;
  readonly timeoutMs: number;
  readonly resolve: (answer: Msg) => void;
  readonly reject: (cause: Error) => void;
};

const ofConnections = new WeakMap<NatsConnection, PublishRequests>();

/** Those of a connection: all its logs share one subscription and one timer. */
export function publishRequests(nats: NatsConnection): PublishRequests {
  const known = ofConnections.get(nats);
  if (known !== undefined) return known;
  const made = new PublishRequests(nats);
  ofConnections.set(nats, made);
  return made;
}

/**
 * Publishes messages that are answered. The client's own `request` makes an error, a timer and a race for each request, also
 * for those that are answered: a tenth of what it costs to record an event. Lives as long as the connection.
 */
export class PublishRequests {
  readonly #nats: NatsConnection;
  readonly #inbox: string;
  readonly #waiting = new Map<string, Waiting>();
  #count = 0;
  /** Runs while something waits. */
  #checks: Timer | undefined;

  constructor(nats: NatsConnection) {
    this.#nats = nats;
    this.#inbox = `${newInbox(nats)}.`;
    nats.subscribe(`${this.#inbox}*`, { callback: (cause, answer) => this.#answered(cause, answer) });
    void nats.closed().then(() => this.#rejectAll(() => new Error("the connection to NATS was closed")));
    void this.#followRefusals();
  }

  /**
   * Rejects with NoRespondersError if nobody listens on the subject, PermissionViolationError if this user may not publish
   * there, and another error without an answer in time or with a closed connection: then the message may have been stored.
   */
  request(subject: string, body: Uint8Array, headers: MsgHdrs, timeoutMs: number): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const token = (++this.#count).toString(36);
      this.#nats.publish(subject, body, { headers, reply: this.#inbox + token });
      this.#waiting.set(token, { subject, endsAt: performance.now() + timeoutMs, timeoutMs, resolve, reject });
      this.#checks ??= startInterval(() => this.#check(), checkMs).unref();
    });
  }

  #answered(cause: Error | null, answer: Msg): void {
    if (cause !== null) {
      // The subscription is over. The next request makes another one.
      ofConnections.delete(this.#nats);
      this.#rejectAll(() => cause);
      return;
    }
    const token = answer.subject.slice(this.#inbox.length);
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return;
    this.#waiting.delete(token);
    if (answer.data.length === 0 && answer.headers?.code === 503)
      waiting.reject(new NoRespondersError(waiting.subject));
    else waiting.resolve(answer);
  }

  #check(): void {
    if (this.#waiting.size === 0) {
      stopTimer(this.#checks);
      this.#checks = undefined;
    }
    const now = performance.now();
    this.#rejectAll(
      ({ timeoutMs }) => new Error(`the log did not answer within ${timeoutMs} ms`),
      ({ endsAt }) => endsAt <= now,
    );
  }

  async #followRefusals(): Promise<void> {
    for await (const status of this.#nats.status()) {
      if (status.type !== "error" || !(status.error instanceof PermissionViolationError)) continue;
      const { error } = status;
      const isPublished = ({ subject }: Waiting) => error.operation === "publish" && subject === error.subject;
      this.#rejectAll(() => error, isPublished);
    }
  }

  #rejectAll(causeOf: (waiting: Waiting) => Error, isMeant: (waiting: Waiting) => boolean = () => true): void {
    for (const [token, waiting] of this.#waiting) {
      if (!isMeant(waiting)) continue;
      this.#waiting.delete(token);
      waiting.reject(causeOf(waiting));
    }
  }
}
