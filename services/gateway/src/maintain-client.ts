import { type ChannelCredentials, type ChannelOptions, Client, Metadata } from "@grpc/grpc-js";
import {
  type EraseDeveloperRequest,
  type EraseDeveloperResponse,
  type EraseRequest,
  type EraseResponse,
  MaintainService,
  type RemoveWorkspaceRequest,
  type RemoveWorkspaceResponse,
  type RetentionResponse,
  type SetRetentionRequest,
  type WaitingResponse,
} from "@tapedeck/proto/tapedeck/v1/maintain";
import { QueryService, type RebuildRequest, type RebuildResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";

/** Maintenance calls to ingest and query. Every failure is a TapedeckError; a service that is away is `not_ready`. */
export type MaintainClient = AsyncDisposable & {
  erase(request: EraseRequest, signal: AbortSignal): AsyncIterable<EraseResponse>;
  eraseDeveloper(request: EraseDeveloperRequest, signal: AbortSignal): AsyncIterable<EraseDeveloperResponse>;
  removeWorkspace(request: RemoveWorkspaceRequest, signal: AbortSignal): AsyncIterable<RemoveWorkspaceResponse>;
  /** By default (without a workspace), and of the workspaces that differ. */
  retention(signal: AbortSignal): AsyncIterable<RetentionResponse>;
  /** Gives one answer: what holds from now on. */
  setRetention(request: SetRetentionRequest, signal: AbortSignal): AsyncIterable<RetentionResponse>;
  /** Rebuilds those of all queries, one after the other. */
  rebuild(request: RebuildRequest, signal: AbortSignal): AsyncIterable<RebuildProgress>;
  /** The items of configured sources' taps that are not in the log yet, in all workspaces. */
  waiting(signal: AbortSignal): AsyncIterable<WaitingResponse>;
};

export type RebuildProgress = {
  /** The log's messages when it began, and how many of them are in the new tables. A message holds one event or several. */
  readonly messages: number;
  readonly done: number;
  /** The events that this call has put into the new tables. */
  readonly events: number;
};

type Addresses = {
  readonly ingest: string;
  /** Those of all queries. */
  readonly queries: () => readonly string[];
};

/** `key`: the services' key, by which both services know the gateway. */
export function maintainClient(
  { ingest, queries }: Addresses,
  key: string,
  channel: ChannelCredentials,
  more: ChannelOptions = {},
): MaintainClient {
  const options = { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 1_000, ...more };
  const toIngest = new Client(ingest, channel, options);

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
    eraseDeveloper: (request, signal) => ask(toIngest, MaintainService.eraseDeveloper, request, signal),
    removeWorkspace: (request, signal) => ask(toIngest, MaintainService.removeWorkspace, request, signal),
    retention: (signal) => ask(toIngest, MaintainService.retention, {}, signal),
    setRetention: (request, signal) => ask(toIngest, MaintainService.setRetention, request, signal),
    async *rebuild(request, signal) {
      let before = { messages: 0, done: 0, events: 0 };
      for (const query of queries()) {
        const client = new Client(query, channel, options);
        let all = before;
        try {
          for await (const response of ask(client, QueryService.rebuild, request, signal)) {
            const { messages, done, events } = progressOf(response);
            all = { messages: before.messages + messages, done: before.done + done, events: before.events + events };
            yield all;
          }
        } finally {
          client.close();
        }
        before = all;
      }
    },
    waiting: (signal) => ask(toIngest, MaintainService.waiting, {}, signal),
    async [Symbol.asyncDispose]() {
      toIngest.close();
    },
  };
}

function progressOf({ first, last, reached, messages, events }: RebuildResponse): RebuildProgress {
  // The sequences of erased events are empty: the part of the sequences stands for the part of the events.
  const [sequences, done] = [Number(last - first) + 1, Number(reached - first) + 1];
  const part = sequences === 0 ? 1 : Math.max(0, Math.min(1, done / sequences));
  return { messages: Number(messages), done: Math.floor(Number(messages) * part), events: Number(events) };
}
