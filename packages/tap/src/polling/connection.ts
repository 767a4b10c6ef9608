import {
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  connectivityState,
  Metadata,
  status,
} from "@grpc/grpc-js";
import { asBytes } from "@tapedeck/shared/rpc/as-bytes";
import { callUnary, failedReply, type Reply } from "../unary-call.ts";

/** A connection to a server that may be left in the middle of a call or a stream without harm to it. */
export class PolledConnection {
  readonly #client: Client;
  readonly #metadata: Metadata;
  readonly #leaving: AbortSignal;
  readonly #over = Promise.withResolvers<string>();
  readonly #lost = new AbortController();
  readonly #closed = new AbortController();

  /** `leaving`: the tap leaves, which closes the connection. */
  constructor(client: Client, { leaving, metadata = new Metadata() }: { leaving: AbortSignal; metadata?: Metadata }) {
    this.#client = client;
    this.#metadata = metadata;
    this.#leaving = leaving;
    leaving.addEventListener("abort", this.#leave);
    // Otherwise a server that leaves or sends GOAWAY between two polls would go unnoticed.
    const channel = client.getChannel();
    const lost = () => this.#finish("the connection was lost");
    channel.watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, lost);
    if (channel.getConnectivityState(false) !== connectivityState.READY) lost();
  }

  /** Aborts when the connection is lost or left. Calls get no answer after that. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Resolves with the reason when the connection is lost or left. */
  get over(): Promise<string> {
    return this.#over.promise;
  }

  /** Never rejects. UNAVAILABLE is the end of the connection. */
  async call(path: string, request: Uint8Array, timeoutMs: number): Promise<Reply> {
    const { signal } = this;
    if (signal.aborted) return failedReply(status.CANCELLED, "the connection has ended");
    const reply = await callUnary(this.#client, path, request, { timeoutMs, signal, metadata: this.#newMetadata() });
    if (reply.code === status.UNAVAILABLE) this.#finish(`UNAVAILABLE: ${reply.message}`);
    return reply;
  }

  /** Like `call`, but also waits for the answer of a server that is shutting down. UNAVAILABLE if none can come. */
  async control(path: string, request: Uint8Array, timeoutMs: number): Promise<Reply> {
    const { signal } = this.#closed;
    const unanswered = failedReply(status.UNAVAILABLE, "the connection ended before the answer came");
    if (signal.aborted) return unanswered;
    const reply = await callUnary(this.#client, path, request, { timeoutMs, signal, metadata: this.#newMetadata() });
    return signal.aborted && reply.code === status.CANCELLED ? unanswered : reply;
  }

  /** Opens a stream, which may still deliver messages after the connection has ended and before it is closed. */
  open(path: string, request: Uint8Array): ClientReadableStream<Buffer> {
    const { signal } = this.#closed;
    const metadata = this.#newMetadata();
    const stream = this.#client.makeServerStreamRequest(path, asBytes, asBytes, Buffer.from(request), metadata);
    const cancel = () => stream.cancel();
    signal.addEventListener("abort", cancel);
    stream.on("status", () => signal.removeEventListener("abort", cancel));
    // The error repeats the status, but an error without a listener would end the process.
    stream.on("error", () => {});
    return stream;
  }

  /** Opens a stream on which both sides send. It ends with the connection. */
  openDuplex(path: string): ClientDuplexStream<Buffer, Buffer> {
    const { signal } = this.#closed;
    const stream = this.#client.makeBidiStreamRequest(path, asBytes, asBytes, this.#newMetadata());
    const cancel = () => stream.cancel();
    signal.addEventListener("abort", cancel);
    stream.on("status", () => signal.removeEventListener("abort", cancel));
    return stream;
  }

  /** Cancels the streams that are still open. */
  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#finish("the connection was closed");
    this.#closed.abort();
    this.#client.close();
  }

  readonly #leave = (): void => {
    this.#finish("the tap has disconnected");
    this.close();
  };

  #finish(reason: string): void {
    if (this.#lost.signal.aborted) return;
    this.#leaving.removeEventListener("abort", this.#leave);
    this.#over.resolve(reason);
    this.#lost.abort();
  }

  #newMetadata(): Metadata {
    return this.#metadata.clone();
  }
}
