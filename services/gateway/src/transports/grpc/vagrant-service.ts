import { Metadata, type ServerDuplexStream, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { VagrantService as methods } from "@tapedeck/proto/vagrant/vagrant";
import type { Streaming, Unary, VagrantApi } from "../../apis/vagrant/vagrant-api.ts";
import { checkProtocol, protocolKey } from "../../apis/vagrant/writes/protocol.ts";
import { boundTo, type CallContext } from "../../call-context.ts";
import type { CallWatch } from "../../metrics.ts";
import { contextOf, type GrpcCall, type GrpcCaller, setHead } from "./call-context.ts";
import type { GrpcServices } from "./server.ts";
import { callSignal, type StreamCall, writeAll } from "./server-stream.ts";
import { asBytes } from "./skaffold-service.ts";
import { toStatus } from "./status.ts";

export type VagrantServiceOptions = {
  /** The source of a listener that serves only one. */
  readonly bound?: string | undefined;
  readonly watch: CallWatch;
  /** Bytes that may wait unread for one stream. */
  readonly unreadBytes: number;
};

/** hashicorp.vagrant.Vagrant over gRPC. Messages pass through as bytes: nobody re-encodes what Vagrant said. */
export function vagrantServices(
  api: VagrantApi,
  caller: GrpcCaller,
  { bound, watch, unreadBytes }: VagrantServiceOptions,
): GrpcServices {
  return {
    definition: Object.fromEntries(
      Object.entries(methods).map(([name, method]) => [name, { ...method, ...asBytes }] as const),
    ),
    handlers: {
      ...mapped(api.unary, (answerOf, name) => unary(answerOf, name !== "getVersionInfo")),
      ...mapped(api.streams, stream),
      ...mapped(api.runners, refused),
    },
    names: ["hashicorp.vagrant.Vagrant"],
  };

  /** Before anything can fail, so that every call is counted and its end is noticed. */
  function begin(call: GrpcCall, { checked = true } = {}): () => CallContext {
    const signal = callSignal(call);
    watch.seen(signal);
    return () => {
      if (checked) checkProtocol(call.metadata.get(protocolKey).map(String));
      return boundTo(bound, contextOf(call.metadata, { ...caller(call), signal }));
    };
  }

  function unary(answerOf: Unary, checked: boolean) {
    return async (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
      const context = begin(call, { checked });
      try {
        const { head, bytes } = await answerOf(call.request, context());
        if (head !== undefined) call.sendMetadata(setHead(new Metadata(), head));
        watch.sent(bytes.byteLength);
        answer(null, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      } catch (error) {
        answer(toStatus(watch.failed(error)));
      }
    };
  }

  function stream(open: Streaming) {
    return async (call: StreamCall & { readonly request: Buffer }) => {
      const context = begin(call);
      try {
        const asked = context();
        const { head, messages } = await open(call.request, asked);
        if (asked.signal.aborted) return;
        call.sendMetadata(setHead(new Metadata(), head));
        await writeAll(call, messages, asked.signal, { unreadBytes, sent: watch.sent });
        if (!asked.signal.aborted) call.end();
      } catch (error) {
        if (!call.cancelled) call.emit("error", toStatus(watch.failed(error)));
      }
    };
  }

  function refused(refuse: () => never) {
    return (call: ServerDuplexStream<Buffer, Buffer>) => {
      const context = begin(call);
      try {
        context();
        refuse();
      } catch (error) {
        call.emit("error", toStatus(watch.failed(error)));
      }
    };
  }
}

function mapped<V, W>(record: Readonly<Record<string, V>>, change: (value: V, name: string) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]));
}
