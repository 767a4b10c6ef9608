import {
  type ChannelCredentials,
  Client,
  Metadata,
  type ServerDuplexStream,
  type ServiceError,
  type StatusObject,
} from "@grpc/grpc-js";
import { RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";
import { asciiName, namePart } from "@tapedeck/shared/source";
import type { Caller } from "../../call-context.ts";

const asIs = (bytes: Buffer) => bytes;

/** A push stream whose messages stay bytes: the gateway does not decode them. */
export type PushCall = ServerDuplexStream<Buffer, Buffer>;

export type RecorderRelay = AsyncDisposable & {
  /** `statusOf` makes the status for the caller from a refusal of ingest (source_taken, not_ready …). */
  push(call: PushCall, caller: Caller, statusOf: (error: unknown) => StatusObject): void;
};

/** Bytes of one tap that may be on their way to ingest. grpc-js itself counts messages, whatever their size. */
const maxWaitingBytes = 2 << 20;

/**
 * Relays Recorder/Push to ingest, with the services' key and the caller's permissions: the workspace, and the developer when
 * the token fixes one. The tap's own metadata are dropped. Each side is read only while the other accepts more, so that a
 * slow recorder slows the tap down and fills no memory.
 */
export function recorderRelay(ingestAddress: string, key: string, channel: ChannelCredentials): RecorderRelay {
  const client = new Client(ingestAddress, channel, {
    "grpc.max_receive_message_length": -1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 10_000,
  });
  return {
    push(call, { workspace, developer, token, revoked }, statusOf) {
      const metadata = new Metadata();
      metadata.set("tapedeck-key", key);
      metadata.set("tapedeck-workspace", asciiName(workspace));
      if (developer !== undefined) metadata.set("tapedeck-developer", asciiName(namePart(developer)));
      if (token !== undefined) metadata.set("tapedeck-token", asciiName(token));
      const upstream = client.makeBidiStreamRequest(RecorderService.push.path, asIs, asIs, metadata);
      const leave = () => upstream.cancel();
      call.once("cancelled", leave);
      // The authentication ends the call. What the tap pushed before may not have arrived.
      revoked?.addEventListener("abort", leave, { once: true });

      let waiting = 0;
      call.on("data", (message: Buffer) => {
        waiting += message.length;
        upstream.write(message, () => {
          waiting -= message.length;
          if (waiting < maxWaitingBytes && call.isPaused()) call.resume();
        });
        if (waiting >= maxWaitingBytes) call.pause();
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
