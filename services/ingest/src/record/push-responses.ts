import type { ControlAnswer, ControlRequest, PushResponse, StreamMessage } from "@tapedeck/proto/tapedeck/v1/recorder";
import { controlTimeouts } from "@tapedeck/shared/control-timeouts";
import { delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";

/** Everything that a push stream sends to the tap after the welcome: the ack watermark, control calls, the session. */
export class PushResponses {
  #committed: bigint;
  #reported: bigint;
  readonly #requests: ControlRequest[] = [];
  readonly #sessions: string[] = [];
  readonly #streamSteps: StreamMessage[] = [];
  readonly #streams = new Map<string, (message: StreamMessage) => void>();
  readonly #answers = new Map<string, (answer: ControlAnswer) => void>();
  readonly #changed = new Notifier();
  #ended: { readonly cause: unknown } | undefined;

  /** `committed`: the index that the welcome has reported. */
  constructor(committed: bigint) {
    this.#committed = committed;
    this.#reported = committed;
  }

  /** Ends with `end`, and throws the cause given there. */
  async *stream(): AsyncGenerator<PushResponse, void> {
    for (;;) {
      const responses = this.#takeResponses();
      for (const response of responses) yield response;
      // More may have come while these were sent.
      if (responses.length > 0) continue;
      if (this.#ended !== undefined) {
        if (this.#ended.cause !== undefined) throw this.#ended.cause;
        return;
      }
      await this.#changed.next();
    }
  }

  /** Everything up to this index is in the log. */
  committed(index: bigint): void {
    this.#committed = index;
    this.#changed.ring();
  }

  /** Reports which session is recorded. */
  sessionFound(session: string): void {
    this.#sessions.push(session);
    this.#changed.ring();
  }

  /** Sends a control call to the tap and waits for its answer. Answers with code 14 if the stream ends first. */
  async ask(request: ControlRequest): Promise<ControlAnswer> {
    const { call } = request;
    if (this.#ended !== undefined) return failed(call, 14, "the tap is not connected");
    const { promise, resolve } = Promise.withResolvers<ControlAnswer>();
    this.#answers.set(call, resolve);
    this.#requests.push(request);
    this.#changed.ring();
    const over = new AbortController();
    const late = delay(controlTimeouts.tapMs, over.signal).then(() =>
      failed(call, 4, "the upstream did not answer in time"),
    );
    const answer = await Promise.race([promise, late]);
    over.abort();
    this.#answers.delete(call);
    return answer;
  }

  /** Whether everything up to this index is in the log within this time. */
  async isCommitted(index: bigint, withinMs: number): Promise<boolean> {
    const end = performance.now() + withinMs;
    while (this.#committed < index && this.#ended === undefined) {
      const leftMs = end - performance.now();
      if (leftMs <= 0) break;
      const over = new AbortController();
      await Promise.race([this.#changed.next(), delay(leftMs, over.signal)]);
      over.abort();
    }
    return this.#committed >= index;
  }

  /** Takes what the tap sends about a stream that was opened, until `closeStream`. */
  openStream(stream: string, take: (message: StreamMessage) => void): void {
    this.#streams.set(stream, take);
    if (this.#ended !== undefined) take(tapClosed(stream));
  }

  closeStream(stream: string): void {
    this.#streams.delete(stream);
  }

  /** Sends a step of a stream to the tap. */
  sendStep(message: StreamMessage): void {
    if (this.#ended !== undefined) return;
    this.#streamSteps.push(message);
    this.#changed.ring();
  }

  /** The tap has sent a step of a stream. */
  streamed(message: StreamMessage): void {
    this.#streams.get(message.stream)?.(message);
  }

  answered(answer: ControlAnswer): void {
    this.#answers.get(answer.call)?.(answer);
  }

  end(cause?: unknown): void {
    this.#ended ??= { cause };
    for (const [call, resolve] of this.#answers) resolve(failed(call, 14, "the tap disconnected before it answered"));
    for (const [stream, take] of this.#streams) take(tapClosed(stream));
    this.#changed.ring();
  }

  #takeResponses(): readonly PushResponse[] {
    const responses: PushResponse[] = [];
    // A tap may leave when all is committed, and wants to know the session then.
    const session = this.#sessions.shift();
    if (session !== undefined) responses.push({ body: { $case: "session_found", value: { session } } });
    if (this.#committed > this.#reported) {
      this.#reported = this.#committed;
      responses.push({ body: { $case: "committed", value: { index: this.#committed } } });
    }
    const request = this.#requests.shift();
    if (request !== undefined) responses.push({ body: { $case: "control", value: request } });
    for (const value of this.#streamSteps.splice(0)) responses.push({ body: { $case: "stream", value } });
    return responses;
  }
}

function failed(call: string, code: number, message: string): ControlAnswer {
  return { call, code, message, response: Buffer.alloc(0) };
}

function tapClosed(stream: string): StreamMessage {
  return { stream, step: { $case: "end", value: { code: 14, message: "the tap disconnected" } } };
}
