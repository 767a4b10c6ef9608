import { Metadata, type ServerDuplexStream, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import type { EncodedAnswer, EncodedBatches, EncodedStream, UpstreamAnswers } from "../../apis/encoded-answer.ts";
import { boundTo, type CallContext } from "../../call-context.ts";
import type { CallWatch } from "../../metrics.ts";
import { contextOf, type GrpcCall, type GrpcCaller, setHead } from "./call-context.ts";
import { callSignal, type StreamCall, writeAll } from "./server-stream.ts";
import { toStatus } from "./status.ts";

export type ServiceOptions = {
  /** The source of a listener that serves only one. */
  readonly bound?: string | undefined;
  readonly watch: CallWatch;
  /** Bytes of one stream that may wait for the client to read them. */
  readonly unreadBytes: number;
};

/** Refuses a call by its metadata, by throwing. */
export type MetadataCheck = (metadata: Metadata) => void;

type RequestCall = StreamCall & { readonly request: Buffer };

/** Makes grpc-js handlers of functions that get a request's bytes and its context, and give encoded messages. */
export class CallHandlers {
  readonly #caller: GrpcCaller;
  readonly #options: ServiceOptions;

  constructor(caller: GrpcCaller, options: ServiceOptions) {
    this.#caller = caller;
    this.#options = options;
  }

  unary(answer: (request: Buffer, context: CallContext) => Promise<EncodedAnswer>, check?: MetadataCheck) {
    return async (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) => {
      const { watch } = this.#options;
      const context = this.#begin(call, check);
      try {
        const { head, bytes } = await answer(call.request, context());
        if (head !== undefined) call.sendMetadata(setHead(new Metadata(), head));
        watch.sent(bytes.byteLength);
        done(null, asBuffer(bytes));
      } catch (error) {
        done(toStatus(watch.failed(error)));
      }
    };
  }

  serverStream(
    open: (request: Buffer, context: CallContext) => Promise<EncodedStream | EncodedBatches>,
    check?: MetadataCheck,
  ) {
    return (call: RequestCall) => this.#stream(call, (context) => open(call.request, context), check);
  }

  /** A stream whose client may send messages, too: they are read and ignored. */
  duplexStream(open: (context: CallContext) => Promise<EncodedStream | EncodedBatches>) {
    return (call: StreamCall) => {
      if ("resume" in call) call.resume();
      return this.#stream(call, open);
    };
  }

  /** A stream whose client's messages are passed on, as fast as they are taken. */
  clientStream(
    open: (messages: AsyncIterable<Buffer>, context: CallContext) => Promise<UpstreamAnswers>,
    check?: MetadataCheck,
  ) {
    return (call: ServerDuplexStream<Buffer, Buffer>) => {
      // Leaving the loop over them would destroy the call before its status is sent.
      const messages = call.iterator({ destroyOnReturn: false });
      return this.#stream(call, (context) => open(messages, context), check);
    };
  }

  async #stream(
    call: StreamCall,
    open: (context: CallContext) => Promise<EncodedStream | EncodedBatches | UpstreamAnswers>,
    check?: MetadataCheck,
  ): Promise<void> {
    const { watch, unreadBytes } = this.#options;
    const contextOfCall = this.#begin(call, check);
    try {
      const context = contextOfCall();
      const { head, messages } = await open(context);
      if (context.signal.aborted) return;
      call.sendMetadata(head === undefined ? new Metadata() : setHead(new Metadata(), head));
      await writeAll(call, messages, context.signal, { unreadBytes, sent: watch.sent });
      if (!context.signal.aborted) call.end();
    } catch (error) {
      if (!call.cancelled) call.emit("error", toStatus(watch.failed(error)));
    }
  }

  /** Runs before anything can fail, so that every call is counted and its end is noticed. */
  #begin(call: GrpcCall, check: MetadataCheck = () => {}): () => CallContext {
    const { bound, watch } = this.#options;
    const signal = callSignal(call);
    watch.seen(signal);
    return () => {
      check(call.metadata);
      return boundTo(bound, contextOf(call.metadata, { ...this.#caller(call), signal }));
    };
  }
}
