import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { EventsRequest, type EventsResponse, TapedeckService } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { infoOf } from "../stack/error-info.ts";
import { ConnectionLost, type Message, refusedBy, type Transport } from "./transport.ts";

export const grpc: Transport = {
  name: "gRPC",
  async *read({ grpc: address, token }, streamRequest, signal) {
    const client = new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
    const metadata = new Metadata();
    if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
    const { path, requestSerialize, responseDeserialize } = TapedeckService.events;
    const request = EventsRequest.fromPartial({
      after: streamRequest.after ?? "",
      until: streamRequest.until ?? "",
      state: streamRequest.state ?? false,
      ...(streamRequest.speed !== undefined && { speed: streamRequest.speed }),
      ...(streamRequest.filter && { filter: copyOf(streamRequest.filter) }),
    });
    const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata);
    const leave = () => call.cancel();
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    try {
      for await (const response of call as AsyncIterable<EventsResponse>) yield messageOf(response);
    } catch (cause) {
      throw toldBy(cause);
    } finally {
      signal.removeEventListener("abort", leave);
      call.cancel();
      client.close();
    }
  },
};

function messageOf({ position, body }: EventsResponse): Message {
  if (body === undefined) throw new Error(`nothing at ${position}`);
  if (body.$case !== "event") return { type: body.$case, position };
  const { event } = body.value;
  if (event === undefined) throw new Error(`no event at ${position}`);
  const { id, kind, source } = event;
  return { type: "event", position, event: { id, kind, source } };
}

function toldBy(cause: unknown): Error {
  if (!isServiceError(cause)) return cause as Error;
  const { code, details: message, metadata } = cause;
  const info = infoOf({ code, message, metadata, bytes: Buffer.alloc(0) });
  return info === undefined ? new ConnectionLost(cause.message, { cause }) : refusedBy(info, cause.details, cause.code);
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "details" in error && "metadata" in error;
}

function copyOf(filter: Readonly<Record<string, readonly string[]>>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(filter).map(([field, values]) => [field, [...values]]));
}
