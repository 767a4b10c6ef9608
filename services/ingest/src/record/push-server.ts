import { timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { type Metadata, Server, type ServerDuplexStream, type ServerWritableStream } from "@grpc/grpc-js";
import {
  type EraseDeveloperRequest,
  type EraseDeveloperResponse,
  type EraseRequest,
  type EraseResponse,
  MaintainService,
  type RemoveWorkspaceRequest,
  type RemoveWorkspaceResponse,
  type RetentionRequest,
  type RetentionResponse,
  type SetRetentionRequest,
  type WaitingRequest,
  type WaitingResponse,
} from "@tapedeck/proto/tapedeck/v1/maintain";
import { type PushRequest, type PushResponse, RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { toGrpcStatus } from "@tapedeck/shared/errors/grpc";
import { decodedRequest } from "@tapedeck/shared/rpc/decoded-request";
import { type ConnectionLimits, listenGrpc } from "@tapedeck/shared/service/grpc-listener";
import { grpcLiveness, keepaliveOptions, type Liveness } from "@tapedeck/shared/service/peer-liveness";
import type { Certificate } from "@tapedeck/shared/service/tls/certificate";
import { serverCredentials } from "@tapedeck/shared/service/tls/grpc-credentials";
import { demoWorkspace, nameOfAscii, namePart } from "@tapedeck/shared/source";
import { mapped } from "@tapedeck/shared/sync/mapped";
import { eraseCall } from "./maintain/erase-call.ts";
import { eraseDeveloperCall } from "./maintain/erase-developer.ts";
import type { PushContext, Recorder } from "./recorder.ts";
import type { Stores } from "./recorder-options.ts";
import { removeWorkspaceCall } from "./removal/remove-call.ts";
import type { Retentions } from "./retention/retentions.ts";

export type PushServerOptions = {
  readonly host: string;
  readonly port: number;
  readonly connectionLimits: ConnectionLimits;
  /** Undefined: plaintext. */
  readonly certificate?: Certificate | undefined;
  /** The services' shared key; empty: everyone may push. */
  readonly key: string;
  /** The workspace of calls for which the gateway names none. */
  readonly workspace: string;
  readonly recorder: Pick<Recorder, "push">;
  /** Undefined while NATS is unavailable. */
  readonly stores: () => Stores | undefined;
  readonly retentions: Pick<Retentions, "all" | "set">;
  /** The items that the taps of configured sources hold. */
  readonly waiting: () => Iterable<WaitingResponse>;
  readonly onInternal: (error: unknown) => void;
  readonly liveness?: Liveness;
};

export type PushServer = AsyncDisposable & { readonly address: string };

/** tapedeck.v1.Recorder/Push for taps elsewhere. Rejects with one sentence when the port can't be had. */
export async function startPushServer(options: PushServerOptions): Promise<PushServer> {
  const { host, port, key, workspace, recorder, onInternal, liveness = grpcLiveness } = options;
  const server = new Server({
    // The gateway's limit is below this, so it is that one which taps have to keep to.
    "grpc.max_receive_message_length": 64 * 1024 * 1024,
    ...keepaliveOptions(liveness),
  });

  async function push(call: ServerDuplexStream<Buffer, PushResponse>): Promise<void> {
    const left = new AbortController();
    call.once("cancelled", () => left.abort());
    const { signal } = left;
    try {
      assertKey(call.metadata, key);
      const context = { ...placeOf(call.metadata, workspace), signal };
      // A loop that is left by an error would otherwise destroy the call before the error is sent.
      const requests = requestsOf(call.iterator({ destroyOnReturn: false }), context);
      for await (const response of recorder.push(requests, context)) {
        if (signal.aborted) return;
        if (!call.write(response)) await once(call, "drain", { signal });
      }
      call.end();
    } catch (cause) {
      if (signal.aborted) return;
      const { code, details, metadata } = toGrpcStatus(cause);
      if (!(cause instanceof TapedeckError) || cause.code === "internal") onInternal(cause);
      call.emit("error", { code, details, metadata });
    }
  }

  const answer = answering({ key, onInternal });
  server.addService(MaintainService, {
    erase: (call: ServerWritableStream<EraseRequest, EraseResponse>) =>
      void answer(call, (request, signal) => eraseCall(request, options.stores(), signal)),
    eraseDeveloper: (call: ServerWritableStream<EraseDeveloperRequest, EraseDeveloperResponse>) =>
      void answer(call, (request, signal) => eraseDeveloperCall(request, options.stores(), signal)),
    removeWorkspace: (call: ServerWritableStream<RemoveWorkspaceRequest, RemoveWorkspaceResponse>) =>
      void answer(call, (request, signal) => removeWorkspaceCall(request, options.stores(), signal)),
    retention: (call: ServerWritableStream<RetentionRequest, RetentionResponse>) =>
      void answer(call, () => options.retentions.all()),
    setRetention: (call: ServerWritableStream<SetRetentionRequest, RetentionResponse>) =>
      void answer(call, (request) => options.retentions.set(request)),
    waiting: (call: ServerWritableStream<WaitingRequest, WaitingResponse>) => void answer(call, options.waiting),
  });
  const asBytes = { push: { ...RecorderService.push, requestDeserialize: (bytes: Buffer) => bytes } };
  server.addService(asBytes, { push: (call: ServerDuplexStream<Buffer, PushResponse>) => void push(call) });
  const { port: bound, ...listener } = await listenGrpc(
    server,
    { host, port, credentials: serverCredentials(options.certificate) },
    options.connectionLimits,
  );
  return { ...listener, address: `${host}:${bound}` };
}

/**
 * Decodes what a tap sends. A user's own recordings must never meet the demo's developers; they wait in their spill. So only
 * pushes are refused: the question whether a push would be accepted is answered as elsewhere.
 */
function requestsOf(
  messages: AsyncIterable<Buffer>,
  { workspace }: Pick<PushContext, "workspace">,
): AsyncIterable<PushRequest> {
  return mapped(messages, (bytes) => {
    if (workspace !== demoWorkspace) return decodedRequest(RecorderService.push, bytes);
    throw new TapedeckError("forbidden", "this is the demo: stop it, and start Tapedeck with --no-demo or a source");
  });
}

/** Answers calls of the gateway: with what a function gives, or with why not. */
function answering({ key, onInternal }: Pick<PushServerOptions, "key" | "onInternal">) {
  return async function answer<Request, Response>(
    call: ServerWritableStream<Request, Response>,
    responsesOf: (request: Request, signal: AbortSignal) => AsyncIterable<Response> | Iterable<Response>,
  ): Promise<void> {
    const left = new AbortController();
    call.once("cancelled", () => left.abort());
    try {
      assertKey(call.metadata, key);
      for await (const response of responsesOf(call.request, left.signal)) call.write(response);
      call.end();
    } catch (cause) {
      if (left.signal.aborted) return;
      if (!(cause instanceof TapedeckError)) onInternal(cause);
      call.emit("error", toGrpcStatus(cause));
    }
  };
}

/**
 * The place in which the gateway lets this tap record. The gateway has checked the token; what the tap reports does not
 * matter.
 */
function placeOf(metadata: Metadata, workspace: string): Pick<PushContext, "workspace" | "developer" | "token"> {
  const named = (name: string) => nameOfAscii(String(metadata.get(name)[0] ?? ""));
  const developer = named("tapedeck-developer");
  const token = named("tapedeck-token");
  return {
    workspace: namePart(named("tapedeck-workspace") || workspace),
    ...(developer !== "" && { developer: namePart(developer) }),
    ...(token !== "" && { token }),
  };
}

function assertKey(metadata: Metadata, key: string): void {
  if (key === "") return;
  const receivedKey = Buffer.from(String(metadata.get("tapedeck-key")[0] ?? ""));
  const expected = Buffer.from(key);
  if (receivedKey.length === expected.length && timingSafeEqual(receivedKey, expected)) return;
  throw new TapedeckError("unauthenticated", "push through the gateway: tapedeck-key is missing or wrong");
}
