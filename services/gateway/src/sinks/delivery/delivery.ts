import type { HeldEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import type { SendOutcome } from "../definition.ts";
import type {
  Format,
  FormatOpening,
  FormatPass,
  FormatReader,
  FormattedSink,
  SinkEvent,
  SinkRequest,
} from "../format/format.ts";
import type { HttpTarget } from "../target/http-target.ts";
import { type AnswerClass, classOf, isAboutContent, outcomeOf, type Refused, unwritten } from "./answers.ts";
import { maxBytesPerRequest, maxEventsPerRequest, maxTries, type SinkTimes, triesOfBatch } from "./times.ts";

export type DeliveryListener = {
  /** Everything up to this offset is accepted or parked. `accepted`: what has been accepted of it since the last call. */
  readonly delivered: (offset: Offset, accepted: readonly SinkEvent[]) => void;
  readonly attempted: (outcome: SendOutcome) => void;
  /** Something is refused; undefined: something was accepted again. */
  readonly failing: (refused: Refused | undefined) => void;
  /** Resolves when the event is parked, which may take until there is room; with the signal otherwise. */
  readonly park: (event: SinkEvent, refused: Refused, tries: number, signal: AbortSignal) => Promise<void>;
};

export type DeliveryOptions = {
  readonly format: Format;
  readonly reader: FormatReader;
  readonly sink: FormattedSink;
  readonly headers: Readonly<Record<string, string>>;
  readonly target: Pick<HttpTarget, "post">;
  readonly times: Pick<SinkTimes, "retryMs" | "maxRetryMs">;
  readonly listener: DeliveryListener;
  readonly opening: FormatOpening;
};

type SendResult = {
  readonly covered: number;
  readonly refused: Refused | undefined;
  readonly count: number;
  readonly request?: SinkRequest;
  /** Whether any request was sent to the target. */
  readonly isSent: boolean;
};

/**
 * Delivers events in their order, one request at a time, again and again until they are accepted. A batch that is refused is halved
 * until one event is left; one that the target refuses, although it is well otherwise, is parked.
 */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #pass: FormatPass;
  readonly #retry: ReturnType<typeof backoff>;
  /** How many events a request may have at present. */
  #size = maxEventsPerRequest;
  /** Failures of one sort, final or not, since something was accepted or parked, or a test failed. None of a target that is away. */
  #tries = 0;
  #isFinal = false;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#pass = options.format.open(options.sink, options.reader, options.opening);
    this.#retry = backoff(options.times.retryMs, options.times.maxRetryMs);
  }

  /**
   * Resolves when all are delivered or parked, or with the signal. Events that must not be read any more are left out. Rejects when the
   * format can't read the log.
   */
  async deliver(events: readonly HeldEvent[], signal: AbortSignal): Promise<void> {
    const { listener } = this.#options;
    for (let rest = events; rest.length > 0 && !signal.aborted; ) {
      const chunk = chunkOf(rest, this.#size);
      const readable = this.#readable(chunk);
      const { covered, refused, count, request, isSent } = await this.#send(readable, signal);
      if (refused === undefined) {
        const last = chunk.at(-1);
        if (last !== undefined) listener.delivered(last.offset, readable);
        rest = rest.slice(chunk.length);
        if (isSent) this.#accepted();
        continue;
      }
      const before = readable[covered - 1]?.recorded.offset;
      if (before !== undefined) {
        listener.delivered(before, readable.slice(0, covered));
        this.#accepted();
        rest = rest.filter(({ offset }) => offset > before);
      }
      if (signal.aborted) return;
      const own = request?.of === undefined ? readable.slice(covered, covered + count) : [request.of];
      const settled = await this.#refused(own, refused, signal);
      if (settled === undefined) continue;
      rest = rest.filter(({ offset }) => offset > settled);
      if (request !== undefined) this.#pass.settled?.(request.id);
    }
  }

  memory(offset: Offset): string | undefined {
    return this.#pass.memory?.(offset);
  }

  /** When requests are due that belong to no event, in ms since 1970; undefined: none are. */
  dueAt(): number | undefined {
    return this.#pass.dueAt?.();
  }

  /** Sends what is due; true when it is accepted or parked. Otherwise it has waited as after each failure, and the rest stays due. */
  async deliverDue(now: number, signal: AbortSignal): Promise<boolean> {
    const requests = (await this.#pass.dueRequests?.(now, signal)) ?? [];
    for (const request of requests) {
      if (signal.aborted) return false;
      const answer = await this.#post(request, signal);
      if (answer.type === "refused" && (await this.#refused([request.of], answer, signal)) === undefined) return false;
      this.#pass.settled?.(request.id);
    }
    if (signal.aborted) return false;
    this.#pass.dueDelivered?.(now);
    if (requests.length > 0) this.#accepted();
    return true;
  }

  /** How many events are accepted and, if one was not, why, by which request, and how many events that has. */
  async #send(events: readonly SinkEvent[], signal: AbortSignal): Promise<SendResult> {
    let covered = 0;
    const requests = await this.#requests(events, signal);
    if (signal.aborted) return { covered, refused: stopped, count: 0, isSent: false };
    if ("type" in requests) return { covered, refused: requests, count: events.length, isSent: false };
    for (const request of requests) {
      const answer = await this.#post(request, signal);
      // An event may have several requests, of which only the last one covers it.
      const count = Math.max(1, request.covers - covered);
      if (answer.type === "refused") return { covered, refused: answer, count, request, isSent: true };
      this.#pass.settled?.(request.id);
      covered = request.covers;
    }
    return { covered, refused: undefined, count: 0, isSent: requests.length > 0 };
  }

  async #requests(events: readonly SinkEvent[], signal: AbortSignal): Promise<readonly SinkRequest[] | Refused> {
    try {
      return await this.#pass.requests(events, signal);
    } catch (cause) {
      return unwritten(cause);
    }
  }

  async #post(request: SinkRequest, signal: AbortSignal): Promise<AnswerClass> {
    const { format, sink, headers, target, listener } = this.#options;
    const at = new Date();
    const body = Buffer.from(request.body);
    const all = { ...request.headers, ...headers, ...format.headersOf?.({ id: request.id, body }, at, sink) };
    const answer = await target.post({ body, headers: all }, signal);
    const result = classOf(answer, at, format);
    if (!signal.aborted) listener.attempted(outcomeOf(result));
    return result;
  }

  /** Waits until the events may be tried again; the offset of the event that is settled instead: parked, or accepted after all. */
  async #refused(events: readonly SinkEvent[], refused: Refused, signal: AbortSignal): Promise<Offset | undefined> {
    const { listener } = this.#options;
    const [first] = events;
    this.#count(refused);
    listener.failing(refused);
    if (events.length > 1) {
      if (refused.isFinal || (!refused.isAway && this.#tries >= triesOfBatch)) {
        this.#size = Math.ceil(events.length / 2);
        if (refused.isFinal) return undefined;
      }
    } else if (first !== undefined) {
      const verdict = await this.#verdict(first, refused, signal);
      const isAccepted = verdict === "accepted";
      if (verdict !== "wait" && !isAccepted) await listener.park(first, verdict, this.#tries, signal);
      if (signal.aborted) return undefined;
      if (verdict !== "wait") {
        listener.delivered(first.recorded.offset, isAccepted ? [first] : []);
        this.#accepted();
        return first.recorded.offset;
      }
    }
    const waitMs = Math.max(this.#retry.next(), refused.retryAfterMs ?? 0);
    await delay(waitMs, signal);
    return undefined;
  }

  /** Why the event is to be parked; or that it is accepted after all, or tried again later. */
  async #verdict(event: SinkEvent, refused: Refused, signal: AbortSignal): Promise<Refused | "accepted" | "wait"> {
    if (this.#options.format.isTestSeen) return isAboutContent(refused) ? refused : "wait";
    if (!this.#isSuspicious(refused) || !(await this.#isTestGood(signal))) return "wait";
    // The target may have become well between the two requests, or the network: the event is tried once more, between two good tests.
    const again = (await this.#send([event], signal)).refused;
    if (again === undefined) return signal.aborted ? "wait" : "accepted";
    this.#count(again);
    return this.#isSuspicious(again) && (await this.#isTestGood(signal)) ? again : "wait";
  }

  #count({ isFinal, isAway }: Refused): void {
    if (isAway) return;
    this.#tries = isFinal === this.#isFinal ? this.#tries + 1 : 1;
    this.#isFinal = isFinal;
  }

  /** Whether the event may be the reason, and not its target. */
  #isSuspicious({ isFinal, isAway }: Refused): boolean {
    return !isAway && (isFinal || this.#tries >= maxTries);
  }

  /** Whether the target accepts a request without an event. If not, the failures until now were its own. */
  async #isTestGood(signal: AbortSignal): Promise<boolean> {
    const { format, sink } = this.#options;
    const test = await this.#post(format.test(new Date(), sink), signal);
    if (test.type === "refused") this.#tries = 0;
    return !signal.aborted && test.type === "accepted";
  }

  #accepted(): void {
    this.#tries = 0;
    this.#retry.reset();
    this.#size = Math.min(maxEventsPerRequest, this.#size * 2);
    this.#options.listener.failing(undefined);
  }

  #readable(chunk: readonly HeldEvent[]): readonly SinkEvent[] {
    const { epoch } = this.#options.sink;
    return chunk.flatMap((held) => {
      const recorded = held.decode();
      return recorded === undefined ? [] : [{ recorded, position: formatPosition({ epoch, offset: held.offset }) }];
    });
  }
}

/** What is returned once the signal has aborted: nobody looks at it. */
const stopped: Refused = {
  type: "refused",
  isFinal: false,
  isAway: true,
  status: undefined,
  error: "stopped",
  retryAfterMs: undefined,
};

/** The first events, as many as a request may have. */
function chunkOf(events: readonly HeldEvent[], size: number): readonly HeldEvent[] {
  let bytes = 0;
  for (const [index, held] of events.entries()) {
    bytes += held.bytes?.byteLength ?? 0;
    if (index >= size || (index > 0 && bytes > maxBytesPerRequest)) return events.slice(0, index);
  }
  return events;
}
