import {
  Metadata,
  type MethodDefinition,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import type { SkaffoldMethod, StreamMethod } from "../../apis/skaffold/methods.ts";
import { skaffoldMethods } from "../../apis/skaffold/methods.ts";
import type { SkaffoldApi } from "../../apis/skaffold/skaffold-api.ts";
import type { CallContext } from "../../call-context.ts";
import { contextOf, setHead } from "./call-context.ts";
import { callSignal, writeAll } from "./server-stream.ts";
import { type OnInternal, toStatus } from "./status.ts";

/** Who calls: from the connection and, where there is authentication, the token. */
export type Caller = (call: { getPeer(): string; metadata: Metadata }) => Pick<CallContext, "workspace" | "who">;

export type ServiceOptions = {
  readonly bound?: string | undefined;
  readonly onInternal: OnInternal;
  readonly seen: (api: string, stream?: AbortSignal) => void;
};

/**
 * proto.SkaffoldService and proto.v2.SkaffoldV2Service over gRPC. Messages pass through as bytes: nobody re-encodes
 * what the upstream said. `bound` is the source of a listener that serves only one (endpoints in tapedeck.yaml).
 */
export function skaffoldServices(api: SkaffoldApi, caller: Caller, { bound, onInternal, seen }: ServiceOptions) {
  const context = (call: { getPeer(): string; metadata: Metadata; once(e: "cancelled", l: () => void): unknown }) => {
    const read = contextOf(call.metadata, { ...caller(call), signal: callSignal(call) });
    seen("skaffold grpc", read.signal);
    return bound === undefined || read.source !== undefined ? read : { ...read, source: bound };
  };

  const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
  const handlers: Record<string, UntypedHandleCall> = {};
  for (const method of skaffoldMethods) {
    definition[method.path] = definitionOf(method);
    handlers[method.path] = handlerOf(method);
  }
  return { definition, handlers };

  function handlerOf(method: SkaffoldMethod): UntypedHandleCall {
    if (method.kind === "stream") {
      return (call: ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>) => {
        void stream(method, call);
      };
    }
    return (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
      const asked = context(call);
      const answered =
        method.kind === "state"
          ? api.getState(method, asked).then(({ head, bytes }) => {
              call.sendMetadata(setHead(new Metadata(), head));
              return bytes;
            })
          : api.control(method, call.request, asked);
      answered.then(
        (bytes) => answer(null, Buffer.from(bytes)),
        (error: unknown) => answer(toStatus(error, onInternal)),
      );
    };
  }

  async function stream(
    method: StreamMethod,
    call: ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>,
  ): Promise<void> {
    const asked = context(call);
    // Clients of Skaffold 0.x call Events as a bidirectional stream: whatever they send is read and means nothing.
    if (method.bidirectional) (call as ServerDuplexStream<Buffer, Buffer>).resume();
    try {
      const { head, frames } = await api.events(method, asked);
      if (asked.signal.aborted) return;
      call.sendMetadata(setHead(new Metadata(), head));
      await writeAll(call, frames, asked.signal);
      if (!asked.signal.aborted) call.end();
    } catch (error) {
      if (!asked.signal.aborted) call.emit("error", toStatus(error, onInternal));
    }
  }
}

function definitionOf(method: SkaffoldMethod): MethodDefinition<Buffer, Buffer> {
  const asIs = (bytes: Buffer) => bytes;
  return {
    path: method.path,
    requestStream: method.kind === "stream" && method.bidirectional,
    responseStream: method.kind === "stream",
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
}
