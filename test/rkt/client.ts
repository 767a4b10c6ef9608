import { Client, credentials, Metadata } from "@grpc/grpc-js";
import type { UnaryRpc } from "@tapedeck/fakes/rkt/recording";
import {
  EventFilter,
  GetInfoResponse,
  GetLogsRequest,
  GetLogsResponse,
  InspectImageResponse,
  InspectPodResponse,
  ListenEventsRequest,
  ListenEventsResponse,
  ListImagesResponse,
  ListPodsResponse,
  type Event as RktEvent,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { skaffoldClient } from "../skaffold/client.ts";

type Head = Readonly<Record<string, string>>;

/** An answer as its message (images as rkt may list them: in any order), or its refusal. */
export type RktAnswer = { readonly result: unknown } | { readonly code: number; readonly message: string };

/** Calls rkt's API on the gateway with bytes, as a client of rkt would. */
export type RktClient = Disposable & {
  readonly unary: ReturnType<typeof skaffoldClient>["unary"];
  ask(rpc: UnaryRpc, request: Uint8Array, head?: Head): Promise<RktAnswer>;
  /** Also returns the answer's position; "" with an error. */
  askWhere(rpc: UnaryRpc, request: Uint8Array, head?: Head): Promise<{ answer: RktAnswer; position: string }>;
  /** Follows until so many events have come. */
  events(count: number, filter?: Partial<EventFilter>): Promise<RktEvent[]>;
  /** Reads a stream until it has ended, or until it is enough. */
  stream(rpc: string, request: Uint8Array, isEnough?: (messages: readonly Buffer[]) => boolean): Promise<Buffer[]>;
  /** Reads without following. */
  logs(request: Partial<GetLogsRequest>): Promise<string[]>;
};

const asIs = (bytes: Buffer) => bytes;
const service = "/v1alpha.PublicAPI";

export function rktClient(address: string): RktClient {
  const { unary, [Symbol.dispose]: close } = skaffoldClient(address);
  const client = new Client(address, credentials.createInsecure(), { "grpc.max_receive_message_length": -1 });

  async function stream(rpc: string, request: Uint8Array, isEnough: (messages: readonly Buffer[]) => boolean) {
    const call = client.makeServerStreamRequest(`${service}/${rpc}`, asIs, asIs, Buffer.from(request), new Metadata());
    const messages: Buffer[] = [];
    if (!isEnough(messages)) {
      for await (const message of call as AsyncIterable<Buffer>) {
        messages.push(message);
        if (isEnough(messages)) break;
      }
    }
    call.on("error", () => {}).cancel(); // leaving the loop does not cancel the call
    return messages;
  }

  async function askWhere(rpc: UnaryRpc, request: Uint8Array, head: Head = {}) {
    const { code, message, bytes, metadata } = await unary(`${service}/${rpc}`, request, { ...head });
    const answer: RktAnswer = code === 0 ? { result: messageOf(rpc, bytes) } : { code, message };
    return { answer, position: String(metadata.get("tapedeck-position")[0] ?? "") };
  }

  return {
    unary,
    ask: async (rpc, request, head) => (await askWhere(rpc, request, head)).answer,
    askWhere,
    async events(count, filter) {
      const request = ListenEventsRequest.encode({ filter: EventFilter.create(filter) }).finish();
      const eventsIn = (messages: readonly Buffer[]) =>
        messages.flatMap((bytes) => ListenEventsResponse.decode(bytes).events);
      return eventsIn(await stream("ListenEvents", request, (messages) => eventsIn(messages).length >= count));
    },
    stream: (rpc, request, isEnough = () => false) => stream(rpc, request, isEnough),
    async logs(request) {
      const bytes = GetLogsRequest.encode(GetLogsRequest.create(request)).finish();
      return (await stream("GetLogs", bytes, () => false)).flatMap((one) => GetLogsResponse.decode(one).lines);
    },
    [Symbol.dispose]() {
      client.close();
      close.call(undefined);
    },
  };
}

export function messageOf(rpc: UnaryRpc, bytes: Uint8Array): unknown {
  switch (rpc) {
    case "GetInfo":
      return GetInfoResponse.decode(bytes).info;
    case "ListPods":
      return ListPodsResponse.decode(bytes).pods;
    case "InspectPod":
      return InspectPodResponse.decode(bytes).pod;
    case "ListImages":
      return ListImagesResponse.decode(bytes).images.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    case "InspectImage":
      return InspectImageResponse.decode(bytes).image;
  }
}
