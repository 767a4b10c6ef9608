import { Metadata, type MethodDefinition, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { type SkaffoldMethod, type StreamMethod, skaffoldMethods } from "../../apis/skaffold/methods.ts";
import type { SkaffoldApi } from "../../apis/skaffold/skaffold-api.ts";
import { boundTo, type CallContext } from "../../call-context.ts";
import type { CallWatch } from "../../metrics.ts";
import { contextOf, type GrpcCall, type GrpcCaller, setHead } from "./call-context.ts";
import type { GrpcServices } from "./server.ts";
import { callSignal, type StreamCall, writeAll } from "./server-stream.ts";
import { toStatus } from "./status.ts";

export type SkaffoldServiceOptions = {
  /** The source of a listener that serves only one. */
  readonly bound?: string | undefined;
  readonly watch: CallWatch;
  /** Bytes that may wait unread for one stream. */
  readonly unreadBytes: number;
};

/**
 * proto.SkaffoldService and proto.v2.SkaffoldV2Service over gRPC. Messages pass through as bytes: nobody re-encodes
 * what the upstream said.
 */
export function skaffoldServices(
  api: SkaffoldApi,
  caller: GrpcCaller,
  { bound, watch, unreadBytes }: SkaffoldServiceOptions,
): GrpcServices {
  const names = [...new Set(skaffoldMethods.map(({ path }) => path.split("/")[1] ?? ""))];
  return {
    definition: Object.fromEntries(skaffoldMethods.map((method) => [method.path, definitionOf(method)])),
    handlers: Object.fromEntries(skaffoldMethods.map((method) => [method.path, handlerOf(method)])),
    names,
  };

  /** Before anything can fail, so that every call is counted and its end is noticed. */
  function begin(call: GrpcCall): () => CallContext {
    const signal = callSignal(call);
    watch.seen(signal);
    return () => boundTo(bound, contextOf(call.metadata, { ...caller(call), signal }));
  }

  function handlerOf(method: SkaffoldMethod) {
    if (method.kind === "stream") return (call: StreamCall) => void stream(method, call);
    return async (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
      const context = begin(call);
      try {
        const bytes = await unary(method, call, context());
        watch.sent(bytes.byteLength);
        answer(null, Buffer.from(bytes));
      } catch (error) {
        answer(toStatus(watch.failed(error)));
      }
    };
  }

  async function unary(
    method: Exclude<SkaffoldMethod, StreamMethod>,
    call: ServerUnaryCall<Buffer, Buffer>,
    context: CallContext,
  ): Promise<Uint8Array> {
    if (method.kind === "control") return api.control(method, call.request, context);
    const { head, bytes } = await api.getState(method, context);
    call.sendMetadata(setHead(new Metadata(), head));
    return bytes;
  }

  async function stream(method: StreamMethod, call: StreamCall): Promise<void> {
    const context = begin(call);
    // Clients of Skaffold 0.x call Events as a bidirectional stream: whatever they send is read and means nothing.
    if ("resume" in call) call.resume();
    try {
      const asked = context();
      const { head, frames } = await api.events(method, asked);
      if (asked.signal.aborted) return;
      call.sendMetadata(setHead(new Metadata(), head));
      await writeAll(call, frames, asked.signal, { unreadBytes, sent: watch.sent });
      if (!asked.signal.aborted) call.end();
    } catch (error) {
      if (!call.cancelled) call.emit("error", toStatus(watch.failed(error)));
    }
  }
}

function definitionOf(method: SkaffoldMethod): MethodDefinition<Buffer, Buffer> {
  return {
    path: method.path,
    requestStream: method.kind === "stream" && method.bidirectional,
    responseStream: method.kind === "stream",
    ...asBytes,
  };
}

const asIs = (bytes: Buffer) => bytes;

/** Messages as they are on the wire. */
export const asBytes = {
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
} as const;
