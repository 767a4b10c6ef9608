import { Metadata, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import {
  type EventsRequest,
  type Filter as FilterMessage,
  type GetStateRequest,
  type ListOperationsRequest,
  type ListSessionsRequest,
  type ListSourcesRequest,
  TapedeckService as methods,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { filterFields, parseFilter } from "@tapedeck/shared/filter/filter";
import { stateHead } from "../../apis/state-head.ts";
import {
  type ListAsked,
  type ListedThings,
  largestLimit,
  listFields,
  operationKind,
} from "../../apis/tapedeck/list-request.ts";
import { type SubscriptionMessage, stateProto } from "../../apis/tapedeck/messages.ts";
import { speedValue } from "../../apis/tapedeck/parameters.ts";
import type { SubscribeRequest, TapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { CallWatch } from "../../metrics.ts";
import { contextOf, type GrpcCall, type GrpcCaller, setHead } from "./call-context.ts";
import type { GrpcServices } from "./server.ts";
import { callSignal, type StreamCall, writeAll } from "./server-stream.ts";
import { asBytes } from "./skaffold-service.ts";
import { toStatus } from "./status.ts";

/** A method by its messages; errors of reading them are ours to tell. */
type Method<Request, Response> = {
  readonly path: string;
  readonly requestDeserialize: (bytes: Buffer) => Request;
  readonly responseSerialize: (response: Response) => Buffer;
};

export type TapedeckServiceOptions = {
  readonly watch: CallWatch;
  /** Bytes that may wait unread for one stream. */
  readonly unreadBytes: number;
};

/** tapedeck.v1.Tapedeck over gRPC: what HTTP and WebSocket say, in messages. */
export function tapedeckServices(
  api: TapedeckApi,
  caller: GrpcCaller,
  { watch, unreadBytes }: TapedeckServiceOptions,
): GrpcServices {
  const lists = api.listMessages;
  return {
    definition: Object.fromEntries(
      Object.entries(methods).map(([name, method]) => [name, { ...method, ...asBytes }] as const),
    ),
    handlers: {
      getState: unary(methods.getState, async (request, context) => {
        const state = stateProto(await api.stateMessages({ ...context, ...placeOf(request) }));
        return [state, stateHead(state)];
      }),
      listSources: unary(methods.listSources, async (request, context) => {
        const list = await lists.sources(context, askedOf("sources", request));
        return [list, { position: list.position }];
      }),
      listSessions: unary(methods.listSessions, async (request, context) => {
        const asked = { ...askedOf("sessions", request), ...timesOf(request), labels: request.labels };
        const list = await lists.sessions(context, asked);
        return [list, { position: list.position }];
      }),
      listOperations: unary(methods.listOperations, async (request, context) => {
        const list = await lists.operations(context, { ...askedOf("operations", request), ...timesOf(request) });
        return [list, { position: list.position }];
      }),
      events,
    },
    names: ["tapedeck.v1.Tapedeck"],
  };

  /** Before anything can fail, so that every call is counted and its end is noticed. */
  function begin(call: GrpcCall): () => CallContext {
    const signal = callSignal(call);
    watch.seen(signal);
    return () => contextOf(call.metadata, { ...caller(call), signal });
  }

  function unary<Request, Response>(
    method: Method<Request, Response>,
    answerOf: (request: Request, context: CallContext) => Promise<readonly [Response, AnswerHead]>,
  ) {
    return async (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
      const context = begin(call);
      try {
        const [response, head] = await answerOf(read(method, call.request), context());
        const bytes = method.responseSerialize(response);
        call.sendMetadata(setHead(new Metadata(), head));
        watch.sent(bytes.byteLength);
        answer(null, bytes);
      } catch (error) {
        answer(toStatus(watch.failed(error)));
      }
    };
  }

  async function events(call: StreamCall & { readonly request: Buffer }): Promise<void> {
    const context = begin(call);
    try {
      const asked = context();
      const { position, messages } = await api.subscribe(subscriptionOf(read(methods.events, call.request)), asked);
      if (asked.signal.aborted) return;
      call.sendMetadata(setHead(new Metadata(), { position }));
      await writeAll(call, rendered(messages), asked.signal, { unreadBytes, sent: watch.sent });
      if (!asked.signal.aborted) call.end();
    } catch (error) {
      if (!call.cancelled) call.emit("error", toStatus(watch.failed(error)));
    }
  }
}

function read<Request>({ path, requestDeserialize }: Method<Request, never>, bytes: Buffer): Request {
  try {
    return requestDeserialize(bytes);
  } catch (cause) {
    throw invalidArgument(`the message is no request of ${path}`, "", { cause });
  }
}

async function* rendered(messages: AsyncIterable<SubscriptionMessage>) {
  for await (const { proto } of messages) yield proto;
}

function placeOf({ source, session, at, min_position }: GetStateRequest): Partial<CallContext> {
  return {
    ...(source !== "" && { source }),
    ...(session !== "" && { session }),
    ...(at !== "" && { at }),
    ...(min_position !== "" && { minPosition: min_position }),
  };
}

function subscriptionOf({ after, until, filter, state, original, speed }: EventsRequest): SubscribeRequest {
  const known = speedValue.optional().safeParse(speed);
  if (!known.success) throw invalidArgument(`speed ${speed} ${known.error.issues[0]?.message}`, "speed");
  return {
    ...(after !== "" && { after }),
    ...(until !== "" && { until }),
    filter: fieldsOf(filter),
    state,
    original,
    ...(known.data !== undefined && { speed: known.data }),
  };
}

function fieldsOf(filter: FilterMessage | undefined): Record<string, readonly string[]> {
  return Object.fromEntries(filterFields.map((field) => [field, filter?.[field] ?? []]));
}

/** What every list can be asked for. */
function askedOf(
  list: ListedThings,
  { filter, limit, page, at }: ListSourcesRequest | ListSessionsRequest | ListOperationsRequest,
): ListAsked {
  const { kinds = [], ...fields } = fieldsOf(filter);
  const known: readonly string[] = listFields[list];
  for (const field of filterFields) {
    if (known.includes(field) || (filter?.[field] ?? []).length === 0) continue;
    throw invalidArgument(`${list} have no ${field}: known are ${known.join(", ")}`, `filter.${field}`);
  }
  if (limit > largestLimit) throw invalidArgument(`limit ${limit} is more than ${largestLimit}`, "limit");
  return {
    filter: parseFilter(fields),
    kinds: kinds.map((kind) => operationKind(kind, "filter.kinds")),
    limit,
    page,
    ...(at !== "" && { at }),
  };
}

function timesOf({ from, to }: ListSessionsRequest | ListOperationsRequest): Pick<ListAsked, "from" | "to"> {
  return { ...(from && { from }), ...(to && { to }) };
}
