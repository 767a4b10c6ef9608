import { type ControlReply, StreamMessage } from "@tapedeck/proto/tapedeck/v1/recorder";
import { maxEffectMs } from "@tapedeck/shared/control-effects";
import { publishStep, StepTooLargeError } from "@tapedeck/shared/log/publish-step";
import { streamSubject } from "@tapedeck/shared/log/subjects";
import { relayedStreams } from "@tapedeck/shared/relayed-streams";
import { delay } from "@tapedeck/shared/sync/delay";
import type { NatsConnection, Subscription } from "nats";
import type { PushResponses } from "../push-responses.ts";
import { notConnected } from "./control.ts";

export type StreamRelayOptions = {
  readonly nats: NatsConnection;
  readonly responses: PushResponses;
  /** Ends every stream. */
  readonly signal: AbortSignal;
};

const noBytes = Buffer.alloc(0);
const unavailable = 14;
const exhausted = 8;

/** Relays the streams between clients (over NATS, from a gateway) and the upstream of one tap (over its push). */
export class StreamRelays {
  readonly #options: StreamRelayOptions;
  readonly #open = new Map<string, StreamRelay>();

  constructor(options: StreamRelayOptions) {
    this.#options = options;
  }

  /** Asks the tap to open a stream. */
  open(stream: string, method: string): ControlReply {
    // Calls that were on their way are still answered while recording ends, and nothing would end this stream any more.
    if (this.#options.signal.aborted) return notConnected;
    if (this.#open.size >= relayedStreams.maxOpen) {
      const message = `this upstream has ${relayedStreams.maxOpen} streams of clients open: close one of them`;
      return { code: exhausted, message, response: noBytes, reason: "limit_exceeded" };
    }
    const over = () => this.#open.delete(stream);
    this.#open.set(stream, new StreamRelay({ ...this.#options, stream, method, over }));
    return { code: 0, message: "", response: noBytes, reason: "" };
  }
}

type RelayOptions = StreamRelayOptions & {
  readonly stream: string;
  readonly method: string;
  readonly over: () => void;
};

class StreamRelay {
  readonly #options: RelayOptions;
  readonly #fromClient: Subscription;
  readonly #over = new AbortController();
  #clientSeenAt = performance.now();
  /** Steps go to the client one after the other. */
  #lastStep: Promise<void> = Promise.resolve();

  constructor(options: RelayOptions) {
    const { nats, responses, signal, stream, method } = options;
    this.#options = options;
    this.#fromClient = nats.subscribe(streamSubject("upstream", stream), {
      callback: (error, message) => {
        if (error === null) this.#fromClientSide(StreamMessage.decode(message.data));
      },
    });
    responses.openStream(stream, this.#fromTap);
    responses.sendStep({ stream, step: { $case: "open", value: method } });
    void this.#watchClient();
    signal.addEventListener("abort", this.#stopped);
  }

  readonly #stopped = () => {
    const { stream } = this.#options;
    this.#fromTap({ stream, step: { $case: "end", value: { code: unavailable, message: "recording was stopped" } } });
  };

  #fromClientSide({ step }: StreamMessage): void {
    const { responses, stream } = this.#options;
    this.#clientSeenAt = performance.now();
    if (step === undefined || step.$case === "alive" || step.$case === "open") return;
    responses.sendStep({ stream, step });
    if (step.$case === "end") this.#close();
  }

  /** What the client may read as an effect of the stream is in the log first. */
  readonly #fromTap = ({ step, effect_index, effect_ms = 0 }: StreamMessage): void => {
    const passOn = async () => {
      if (this.#over.signal.aborted) return;
      const startedAt = performance.now();
      const isRecorded =
        effect_index !== undefined &&
        (await this.#options.responses.isCommitted(effect_index, maxEffectMs - effect_ms));
      const total = effect_ms + Math.round(performance.now() - startedAt);
      this.#send(step, isRecorded ? total : undefined);
      if (step?.$case === "end") this.#close();
    };
    this.#lastStep = this.#lastStep.then(passOn).catch(this.#fail);
  };

  /** Ends the stream on both sides, as a step of it can't reach the client. */
  readonly #fail = (error: unknown): void => {
    const { responses, stream } = this.#options;
    const code = error instanceof StepTooLargeError ? exhausted : unavailable;
    const step = { $case: "end" as const, value: { code, message: (error as Error).message } };
    responses.sendStep({ stream, step });
    this.#close();
    if (code === exhausted) this.#send(step);
  };

  async #watchClient(): Promise<void> {
    const { signal } = this.#over;
    while (performance.now() - this.#clientSeenAt < relayedStreams.silentMs) {
      await delay(relayedStreams.aliveMs, signal);
      if (signal.aborted) return;
      this.#send({ $case: "alive", value: true });
    }
    const { responses, stream } = this.#options;
    responses.sendStep({ stream, step: { $case: "end", value: { code: 1, message: "the client is gone" } } });
    this.#close();
  }

  #send(step: StreamMessage["step"], effect_ms?: number): void {
    const { nats, stream } = this.#options;
    if (nats.isClosed()) return;
    publishStep(nats, "client", { stream, step, effect_ms });
  }

  #close(): void {
    const { responses, signal, stream, over } = this.#options;
    this.#over.abort();
    signal.removeEventListener("abort", this.#stopped);
    responses.closeStream(stream);
    this.#fromClient.unsubscribe();
    over();
  }
}
