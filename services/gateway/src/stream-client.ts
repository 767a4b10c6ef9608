import { StreamMessage } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { publishStep, StepTooLargeError } from "@tapedeck/shared/log/publish-step";
import { streamSubject } from "@tapedeck/shared/log/subjects";
import { relayedStreams } from "@tapedeck/shared/relayed-streams";
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import type { Subscription } from "nats";
import { ulid } from "ulid";
import { UpstreamError } from "./apis/upstream-error.ts";
import type { ControlClient } from "./control-client.ts";
import type { LiveNatsConnection } from "./log-link.ts";

/** A message of the upstream, and how long it took until its effect was recorded (ControlReply.effect_ms). */
export type UpstreamMessage = { readonly bytes: Buffer; readonly effect_ms: number | undefined };

export type OpenStream = {
  readonly source: SourceName;
  /** Full gRPC method. */
  readonly method: string;
  readonly who: string;
  /** The client's messages. They are read only as fast as the upstream takes them. */
  readonly requests: AsyncIterable<Uint8Array>;
  /** The client is gone, or its token is over. */
  readonly signal: AbortSignal;
};

/** Streams to an upstream, through the ingest and the tap that record it. */
export type StreamClient = {
  /**
   * Opens a stream, and gives the upstream's messages. The last value is the effect of the end, without bytes. They throw the
   * upstream's status as UpstreamError (RESOURCE_EXHAUSTED for a message too large for NATS), and TapedeckError upstream_away
   * when the way to the upstream breaks. The stream ends with its signal, whether they are read or not.
   * @throws TapedeckError upstream_away, limit_exceeded, not_ready
   */
  open(stream: OpenStream): Promise<AsyncGenerator<UpstreamMessage, number | undefined>>;
};

export function streamClient(nats: () => LiveNatsConnection, control: ControlClient): StreamClient {
  return {
    async open(options) {
      const stream = new RelayedStream(nats(), options);
      try {
        const { source, method, who } = options;
        const request = Buffer.alloc(0);
        const call = { method, request, forwarded_method: method, forwarded_request: request, who, stream: stream.id };
        await control.call(source, call);
        stream.endWithSignal();
        return stream.messages();
      } catch (error) {
        // It may be open there, where the answer is what was lost.
        stream.leave();
        throw error;
      }
    },
  };
}

const exhausted = 8;

class RelayedStream {
  readonly id = ulid();
  readonly #nats: LiveNatsConnection;
  readonly #options: OpenStream;
  readonly #subscription: Subscription;
  readonly #received: StreamMessage[] = [];
  readonly #changed = new Notifier();
  readonly #over = new AbortController();
  /** Bytes of the client that the upstream has taken. */
  #taken = 0;
  #upstreamSeenAt = performance.now();

  constructor(nats: LiveNatsConnection, options: OpenStream) {
    this.#nats = nats;
    this.#options = options;
    this.#subscription = nats.connection.subscribe(streamSubject("client", this.id), {
      callback: (error, message) => {
        if (error === null) this.#receive(StreamMessage.decode(message.data));
      },
    });
    const wake = () => this.#changed.ring();
    nats.broken.addEventListener("abort", wake, { signal: this.#over.signal });
  }

  /** Before the upstream's side is open, its `end` would be lost. */
  endWithSignal(): void {
    const { signal } = this.#options;
    const leave = () => this.leave();
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { signal: this.#over.signal });
  }

  async *messages(): AsyncGenerator<UpstreamMessage, number | undefined> {
    void this.#sendRequests();
    void this.#sendAlive();
    let passedOn = 0;
    try {
      while (!this.#options.signal.aborted) {
        const message = this.#received.shift();
        if (message === undefined) {
          await this.#wait();
          continue;
        }
        const { step, effect_ms } = message;
        if (step?.$case === "data") {
          yield { bytes: step.value, effect_ms };
          passedOn += step.value.length;
          this.#send({ $case: "taken", value: BigInt(passedOn) });
        } else if (step?.$case === "end") {
          if (step.value.code === 0) return effect_ms;
          throw new UpstreamError(step.value.code, step.value.message);
        }
      }
      return undefined;
    } finally {
      this.leave();
    }
  }

  leave(): void {
    if (this.#over.signal.aborted) return;
    this.#send({ $case: "end", value: { code: 1, message: "the client has left" } });
    this.#over.abort();
    this.#subscription.unsubscribe();
    this.#changed.ring();
  }

  #receive(message: StreamMessage): void {
    this.#upstreamSeenAt = performance.now();
    const { step } = message;
    if (step?.$case === "taken") this.#taken = Number(step.value);
    else if (step?.$case !== "alive") this.#received.push(message);
    this.#changed.ring();
  }

  /** @throws TapedeckError upstream_away */
  async #wait(): Promise<void> {
    const leftMs = this.#upstreamSeenAt + relayedStreams.silentMs - performance.now();
    if (leftMs <= 0 || this.#nats.broken.aborted) {
      throw new TapedeckError(
        "upstream_away",
        `the connection to ${this.#options.source} was lost: open the stream again`,
      );
    }
    const over = new AbortController();
    await Promise.race([this.#changed.next(), delay(leftMs, over.signal)]);
    over.abort();
  }

  async #sendRequests(): Promise<void> {
    let sent = 0;
    try {
      for await (const bytes of this.#options.requests) {
        while (sent > this.#taken && sent - this.#taken + bytes.length > relayedStreams.windowBytes) {
          if (this.#over.signal.aborted) return;
          await this.#changed.next();
        }
        if (this.#over.signal.aborted) return;
        sent += bytes.length;
        this.#send({ $case: "data", value: Buffer.from(bytes) });
      }
      if (!this.#over.signal.aborted) this.#send({ $case: "half_close", value: true });
    } catch (error) {
      // Otherwise the client's side broke, which ends the call with its signal.
      if (error instanceof StepTooLargeError) this.#endBothSides(error.message);
    }
  }

  #endBothSides(message: string): void {
    const step = { $case: "end" as const, value: { code: exhausted, message } };
    this.#send(step);
    this.#receive({ stream: this.id, step });
  }

  async #sendAlive(): Promise<void> {
    while (!this.#over.signal.aborted) {
      await delay(relayedStreams.aliveMs, this.#over.signal);
      if (!this.#over.signal.aborted) this.#send({ $case: "alive", value: true });
    }
  }

  #send(step: StreamMessage["step"]): void {
    const { connection, broken } = this.#nats;
    if (broken.aborted || connection.isClosed() || connection.isDraining()) return;
    publishStep(connection, "upstream", { stream: this.id, step });
  }
}
