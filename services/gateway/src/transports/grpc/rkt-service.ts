import { Metadata, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { PublicAPIService as methods } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { unreadableRequest } from "../../apis/rkt/errors.ts";
import type { RktAnswer, RktApi, RktStream } from "../../apis/rkt/rkt-api.ts";
import { boundTo, type CallContext } from "../../call-context.ts";
import type { CallWatch } from "../../metrics.ts";
import { contextOf, type GrpcCall, type GrpcCaller, setHead } from "./call-context.ts";
import type { GrpcServices } from "./server.ts";
import { callSignal, type StreamCall, writeAll } from "./server-stream.ts";
import { asBytes } from "./skaffold-service.ts";
import { toStatus } from "./status.ts";

export type RktServiceOptions = {
  /** The source of a listener that serves only one. */
  readonly bound?: string | undefined;
  readonly watch: CallWatch;
  /** Bytes that may wait unread for one stream. */
  readonly unreadBytes: number;
};

type Reads<Request> = { readonly requestDeserialize: (bytes: Buffer) => Request };

/** v1alpha.PublicAPI over gRPC. Answers pass through as bytes: nobody re-encodes what rkt said. */
export function rktServices(
  api: RktApi,
  caller: GrpcCaller,
  { bound, watch, unreadBytes }: RktServiceOptions,
): GrpcServices {
  return {
    definition: Object.fromEntries(
      Object.entries(methods).map(([name, method]) => [name, { ...method, ...asBytes }] as const),
    ),
    handlers: {
      getInfo: unary(methods.getInfo, api.getInfo),
      listPods: unary(methods.listPods, api.listPods),
      inspectPod: unary(methods.inspectPod, api.inspectPod),
      listImages: unary(methods.listImages, api.listImages),
      inspectImage: unary(methods.inspectImage, api.inspectImage),
      listenEvents: stream(methods.listenEvents, api.listenEvents),
      getLogs: stream(methods.getLogs, api.getLogs),
    },
    names: ["v1alpha.PublicAPI"],
  };

  /** Before anything can fail, so that every call is counted and its end is noticed. */
  function begin(call: GrpcCall): () => CallContext {
    const signal = callSignal(call);
    watch.seen(signal);
    return () => boundTo(bound, contextOf(call.metadata, { ...caller(call), signal }));
  }

  function unary<R>(method: Reads<R>, answerOf: (request: R, context: CallContext) => Promise<RktAnswer>) {
    return async (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
      const context = begin(call);
      try {
        const { head, bytes } = await answerOf(read(method, call.request), context());
        call.sendMetadata(setHead(new Metadata(), head));
        watch.sent(bytes.byteLength);
        answer(null, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      } catch (error) {
        answer(toStatus(watch.failed(error)));
      }
    };
  }

  function stream<R>(method: Reads<R>, open: (request: R, context: CallContext) => Promise<RktStream>) {
    return async (call: StreamCall & { readonly request: Buffer }) => {
      const context = begin(call);
      try {
        const asked = context();
        const { head, messages } = await open(read(method, call.request), asked);
        if (asked.signal.aborted) return;
        call.sendMetadata(setHead(new Metadata(), head));
        await writeAll(call, messages, asked.signal, { unreadBytes, sent: watch.sent });
        if (!asked.signal.aborted) call.end();
      } catch (error) {
        if (!call.cancelled) call.emit("error", toStatus(watch.failed(error)));
      }
    };
  }
}

function read<R>({ requestDeserialize }: Reads<R>, bytes: Buffer): R {
  try {
    return requestDeserialize(bytes);
  } catch {
    throw unreadableRequest();
  }
}
