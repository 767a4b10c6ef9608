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
import { namePart } from "@tapedeck/shared/source";
import type { Caller } from "../../call-context.ts";

const asIs = (bytes: Buffer) => bytes;

/** A push stream, its messages as bytes: the gateway does not look inside. */
export type PushCall = ServerDuplexStream<Buffer, Buffer>;

export type RecorderRelay = AsyncDisposable & {
  /** `statusOf` words what ingest refuses (source_taken, not_ready …) for the caller. */
  push(call: PushCall, caller: Caller, statusOf: (error: unknown) => StatusObject): void;
};

/** What one tap may have on its way to ingest: grpc-js itself counts messages there, whatever their size. */
const mostWaitingBytes = 2 << 20;

/**
 * Recorder/Push, handed on to ingest with the services' key and where the caller may record: the workspace, and the
 * developer where the token fixes that. Nothing that the tap sent as metadata goes along. Each side is read only while the
 * other takes more, so a slow recorder slows the pushing tap and nobody's memory.
 */
export function recorderRelay(ingestAddress: string, key: string): RecorderRelay {
  const client = new Client(ingestAddress, credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 10_000,
  });
  return {
    push(call, { workspace, developer, revoked }, statusOf) {
      const metadata = new Metadata();
      metadata.set("tapedeck-key", key);
      metadata.set("tapedeck-workspace", workspace);
      if (developer !== undefined) metadata.set("tapedeck-developer", namePart(developer));
      const upstream = client.makeBidiStreamRequest(RecorderService.push.path, asIs, asIs, metadata);
      const leave = () => upstream.cancel();
      call.once("cancelled", leave);
      // Whoever let the tap in ends its call; what it has pushed before need not have come so far.
      revoked?.addEventListener("abort", leave, { once: true });

      let waiting = 0;
      call.on("data", (message: Buffer) => {
        waiting += message.length;
        upstream.write(message, () => {
          waiting -= message.length;
          if (waiting < mostWaitingBytes && call.isPaused()) call.resume();
        });
        if (waiting >= mostWaitingBytes) call.pause();
      });
      call.on("end", () => upstream.end());
      upstream.on("data", (message: Buffer) => {
        if (!call.write(message)) {
          upstream.pause();
          call.once("drain", () => upstream.resume());
        }
      });
      upstream.on("end", () => call.end());
      upstream.on("error", (error: ServiceError) => {
        if (!call.cancelled && !revoked?.aborted) call.emit("error", statusOf(fromServiceError(error)));
      });
      upstream.on("status", () => revoked?.removeEventListener("abort", leave));
    },
    [Symbol.asyncDispose]: async () => client.close(),
  };
}
