import { type ClientDuplexStream, status } from "@grpc/grpc-js";
import type { StreamMessage } from "@tapedeck/proto/tapedeck/v1/recorder";
import { relayedStreams } from "@tapedeck/shared/relayed-streams";

/** A stream to the upstream. Both sides send messages as bytes. */
export type UpstreamStream = {
  readonly call: ClientDuplexStream<Buffer, Buffer>;
  /**
   * Called before a message of the upstream, or the end of the stream (undefined), is passed on. Resolves when what the stream
   * has changed by then was emitted, with the time that this took in ms; undefined: nothing has changed, or it took too long.
   */
  readonly observe: (message: Buffer | undefined) => Promise<number | undefined>;
  /** Called with each message of the client before it is passed on. */
  readonly clientSends?: (message: Buffer) => void;
};

export type RelayedStreamsOptions = {
  /** Undefined: there is no connection to the upstream, or it has no such stream. */
  readonly open: (method: string) => UpstreamStream | undefined;
  readonly send: (message: StreamMessage) => Promise<void>;
  /** Index of the last item that was emitted. */
  readonly lastIndex: () => bigint;
};

/** The streams of clients to the upstream that came over one push. Each side is read only as fast as the other takes it. */
export class RelayedStreams {
  readonly #options: RelayedStreamsOptions;
  readonly #streams = new Map<string, RelayedStream>();

  constructor(options: RelayedStreamsOptions) {
    this.#options = options;
  }

  /** Takes a step from the client. */
  take({ stream: id, step }: StreamMessage): void {
    if (step?.$case === "open") this.#open(id, step.value);
    else this.#streams.get(id)?.take(step);
  }

  /** The push is over: nothing can reach the clients any more. */
  close(): void {
    for (const stream of this.#streams.values()) stream.cancel();
    this.#streams.clear();
  }

  #open(id: string, method: string): void {
    const { open, send } = this.#options;
    const opened = open(method);
    if (opened === undefined) {
      const value = { code: status.UNAVAILABLE, message: "no connection to the upstream, or it has no such stream" };
      void send({ stream: id, step: { $case: "end", value } });
      return;
    }
    const over = () => this.#streams.delete(id);
    this.#streams.set(id, new RelayedStream({ ...this.#options, id, opened, over }));
    void send({ stream: id, step: { $case: "alive", value: true } });
  }
}

type RelayedStreamOptions = RelayedStreamsOptions & {
  readonly id: string;
  readonly opened: UpstreamStream;
  readonly over: () => void;
};

class RelayedStream {
  readonly #options: RelayedStreamOptions;
  /** Bytes from the client that the upstream has taken. */
  #taken = 0;
  #sent = 0;
  /** Bytes that the client has taken. */
  #takenByClient = 0;
  /** Steps go to the client one after the other. */
  #lastStep: Promise<void> = Promise.resolve();

  constructor(options: RelayedStreamOptions) {
    const { call } = options.opened;
    this.#options = options;
    // The status repeats the error, but an error without a listener would end the process.
    call.on("error", () => {});
    call.on("data", (bytes: Buffer) => this.#passOn(bytes));
    const drained = new Promise((resolve) => call.on("end", resolve));
    call.on("status", ({ code, details }) => void drained.then(() => this.#end(code, details)));
  }

  take(step: StreamMessage["step"]): void {
    const { call, clientSends } = this.#options.opened;
    if (step?.$case === "data") {
      const { length } = step.value;
      clientSends?.(step.value);
      call.write(step.value, () => {
        this.#taken += length;
        void this.#send({ $case: "taken", value: BigInt(this.#taken) });
      });
    } else if (step?.$case === "half_close") call.end();
    else if (step?.$case === "end") this.cancel();
    else if (step?.$case === "taken") {
      this.#takenByClient = Number(step.value);
      this.#resume();
    }
  }

  cancel(): void {
    this.#options.over();
    this.#options.opened.call.cancel();
  }

  #passOn(bytes: Buffer): void {
    this.#options.opened.call.pause();
    this.#sent += bytes.length;
    void this.#inOrder({ $case: "data", value: bytes }, bytes).then(() => this.#resume());
  }

  #resume(): void {
    if (this.#sent - this.#takenByClient < relayedStreams.windowBytes) this.#options.opened.call.resume();
  }

  #end(code: number, message: string): void {
    void this.#inOrder({ $case: "end", value: { code, message } }, undefined).then(this.#options.over);
  }

  #inOrder(step: NonNullable<StreamMessage["step"]>, message: Buffer | undefined): Promise<void> {
    const { opened, lastIndex } = this.#options;
    this.#lastStep = this.#lastStep.then(async () => {
      const effect_ms = await opened.observe(message);
      await this.#send(step, effect_ms === undefined ? {} : { effect_ms, effect_index: lastIndex() });
    });
    return this.#lastStep;
  }

  async #send(step: NonNullable<StreamMessage["step"]>, effect: Partial<StreamMessage> = {}): Promise<void> {
    await this.#options.send({ stream: this.#options.id, step, ...effect });
  }
}
