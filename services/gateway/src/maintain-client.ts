import { type ChannelCredentials, Client, Metadata } from "@grpc/grpc-js";
import {
  type ArriveRequest,
  type ArriveResponse,
  type EraseRequest,
  type EraseResponse,
  MaintainService,
  type MoveRequest,
  type MoveResponse,
  type WaitingResponse,
} from "@tapedeck/proto/tapedeck/v1/maintain";
import { QueryService, type RebuildRequest, type RebuildResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";

/** Maintenance calls to ingest and query. Every failure is a TapedeckError; a service that is away is `not_ready`. */
export type MaintainClient = AsyncDisposable & {
  erase(request: EraseRequest, signal: AbortSignal): AsyncIterable<EraseResponse>;
  move(request: MoveRequest, signal: AbortSignal): AsyncIterable<MoveResponse>;
  arrive(request: ArriveRequest, signal: AbortSignal): AsyncIterable<ArriveResponse>;
  rebuild(request: RebuildRequest, signal: AbortSignal): AsyncIterable<RebuildResponse>;
  /** The items of configured sources' taps that are not in the log yet, in all workspaces. */
  waiting(signal: AbortSignal): AsyncIterable<WaitingResponse>;
};

type Addresses = { readonly ingest: string; readonly query: string };

/** `key`: the services' key, by which both services know the gateway. */
export function maintainClient({ ingest, query }: Addresses, key: string, channel: ChannelCredentials): MaintainClient {
  const options = { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 1_000 };
  const [toIngest, toQuery] = [ingest, query].map((address) => new Client(address, channel, options)) as [
    Client,
    Client,
  ];

  type Method<Request, Response> = {
    readonly path: string;
    readonly requestSerialize: (request: Request) => Buffer;
    readonly responseDeserialize: (bytes: Buffer) => Response;
  };

  async function* ask<Request, Response>(
    client: Client,
    { path, requestSerialize, responseDeserialize }: Method<Request, Response>,
    request: Request,
    signal: AbortSignal,
  ): AsyncGenerator<Response, void> {
    const metadata = new Metadata();
    metadata.set("tapedeck-key", key);
    const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata);
    const leave = () => call.cancel();
    signal.addEventListener("abort", leave);
    try {
      yield* call as AsyncIterable<Response>;
    } catch (error) {
      if (!signal.aborted) throw fromServiceError(error);
    } finally {
      signal.removeEventListener("abort", leave);
      leave();
    }
  }

  return {
    erase: (request, signal) => ask(toIngest, MaintainService.erase, request, signal),
    move: (request, signal) => ask(toIngest, MaintainService.move, request, signal),
    arrive: (request, signal) => ask(toIngest, MaintainService.arrive, request, signal),
    rebuild: (request, signal) => ask(toQuery, QueryService.rebuild, request, signal),
    waiting: (signal) => ask(toIngest, MaintainService.waiting, {}, signal),
    async [Symbol.asyncDispose]() {
      toIngest.close();
      toQuery.close();
    },
  };
}
