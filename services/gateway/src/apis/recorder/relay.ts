import {
  Client,
  credentials,
  Metadata,
  type ServerDuplexStream,
  type ServiceError,
  type StatusObject,
} from "@grpc/grpc-js";
import { RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";
import type { Caller } from "../../call-context.ts";

const asIs = (bytes: Buffer) => bytes;

/** A push stream, its messages as bytes: the gateway does not look inside. */
export type PushCall = ServerDuplexStream<Buffer, Buffer>;

export type RecorderRelay = AsyncDisposable & {
  /** `statusOf` words what ingest refuses (source_taken, not_ready …) for the caller. */
  push(call: PushCall, caller: Caller, statusOf: (error: unknown) => StatusObject): void;
};

/**
 * Recorder/Push, handed on to ingest with the services' key and the workspace that the caller was let into. Each side
 * is read only while the other takes more, so a slow recorder slows the pushing tap and nobody's memory.
 */
export function recorderRelay(ingestAddress: string, key: string): RecorderRelay {
  const client = new Client(ingestAddress, credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
  });
  return {
    push(call, { workspace, who }, statusOf) {
      const metadata = new Metadata();
      metadata.set("tapedeck-key", key);
      metadata.set("tapedeck-workspace", workspace);
      metadata.set("tapedeck-who", who);
      const upstream = client.makeBidiStreamRequest(RecorderService.push.path, asIs, asIs, metadata);
      call.on("data", (message: Buffer) => {
        if (!upstream.write(message)) {
          call.pause();
          upstream.once("drain", () => call.resume());
        }
      });
      call.on("end", () => upstream.end());
      call.once("cancelled", () => upstream.cancel());
      upstream.on("data", (message: Buffer) => {
        if (!call.write(message)) {
          upstream.pause();
          call.once("drain", () => upstream.resume());
        }
      });
      upstream.on("end", () => call.end());
      upstream.on("error", (error: ServiceError) => {
        if (!call.cancelled) call.emit("error", statusOf(fromServiceError(error)));
      });
    },
    [Symbol.asyncDispose]: async () => client.close(),
  };
}
