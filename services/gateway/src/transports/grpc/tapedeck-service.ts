import {
  type EventsRequest,
  type Filter as FilterMessage,
  type GetStateRequest,
  type ListSourcesRequest,
  TapedeckService as methods,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { filterFields, parseFilter } from "@tapedeck/shared/filter/filter";
import { largestPage } from "@tapedeck/shared/largest-page";
import { decodedRequest, type RequestCodec } from "@tapedeck/shared/rpc/decoded-request";
import type { EncodedAnswer } from "../../apis/encoded-answer.ts";
import { stateHead } from "../../apis/state-head.ts";
import {
  historyKind,
  type ListName,
  type ListParameters,
  listFields,
  operationKind,
} from "../../apis/tapedeck/list-request.ts";
import { allOf, type SubscriptionMessages, stateProto } from "../../apis/tapedeck/messages.ts";
import { speedValue } from "../../apis/tapedeck/parameter-schemas.ts";
import type { SubscribeRequest, TapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import { byteMethods } from "./byte-methods.ts";
import type { GrpcCaller } from "./call-context.ts";
import { CallHandlers, type ServiceOptions } from "./call-handlers.ts";
import type { GrpcServices } from "./server.ts";

/** A method by its codecs. Messages are decoded here, so that an unreadable one gets an error of ours. */
type MethodCodec<Request, Response> = RequestCodec<Request> & {
  readonly responseSerialize: (response: Response) => Buffer;
};

/** tapedeck.v1.Tapedeck over gRPC: what HTTP and WebSocket offer, in messages. */
export function tapedeckServices(api: TapedeckApi, caller: GrpcCaller, options: ServiceOptions): GrpcServices {
  const handlers = new CallHandlers(caller, options);
  const { lists } = api;
  return {
    definition: byteMethods(methods),
    handlers: {
      getState: handlers.unary(
        answering(methods.getState, async (request, context) => {
          const state = stateProto(await api.stateMessages({ ...context, ...scopeOf(request) }));
          return { response: state, head: stateHead(state) };
        }),
      ),
      listSources: handlers.unary(
        answering(methods.listSources, async (request, context) =>
          listAnswer(await lists.sources(context, requestsOf("sources", request))),
        ),
      ),
      listSessions: handlers.unary(
        answering(methods.listSessions, async (request, context) => {
          const { from, to } = request;
          return listAnswer(await lists.sessions(context, { ...requestsOf("sessions", request), from, to }));
        }),
      ),
      listOperations: handlers.unary(
        answering(methods.listOperations, async (request, context) => {
          const { from, to, per_source, runner, loop } = request;
          if (per_source > largestPage)
            throw invalidArgument(`per_source ${per_source} is more than ${largestPage}`, "per_source");
          const query = { ...requestsOf("operations", request), from, to, perSource: per_source, runner, loop };
          return listAnswer(await lists.operations(context, query));
        }),
      ),
      search: handlers.unary(
        answering(methods.search, async (request, context) => {
          const { from, to, text, reasons, min_position } = request;
          const scope = min_position === "" ? context : { ...context, minPosition: min_position };
          const query = { ...requestsOf("search", { ...request, at: "" }), from, to, text, reasons };
          return listAnswer(await lists.search(scope, query));
        }),
      ),
      compare: handlers.unary(
        answering(methods.compare, async ({ left, right, min_position, at }, context) => {
          const query = { ...(left !== "" && { left }), ...(right !== "" && { right }), at: at || context.at };
          const scope = min_position === "" ? context : { ...context, minPosition: min_position };
          const comparison = await api.compare(scope, query);
          return { response: comparison, head: { position: comparison.position } };
        }),
      ),
      exportTables: handlers.serverStream(async (bytes, context) =>
        api.exportTables(decodedRequest(methods.exportTables, bytes), context),
      ),
      events: handlers.serverStream(async (bytes, context) => {
        const request = decodedRequest(methods.events, bytes);
        const { position, messages } = await api.subscribe(subscriptionOf(request), context);
        return { head: { position }, messages: rendered(messages, request.max_message_bytes || defaultMessageBytes) };
      }),
    },
    names: ["tapedeck.v1.Tapedeck"],
  };
}

/** A client's own library refuses a larger message with an error that does not say what to do. */
function assertFits({ byteLength }: Buffer, { max_message_bytes = 0 }: { readonly max_message_bytes?: number }): void {
  const maxBytes = max_message_bytes || defaultMessageBytes;
  if (byteLength <= maxBytes) return;
  const how = "set max_message_bytes to what your client accepts, or read it over HTTP";
  throw new TapedeckError("limit_exceeded", `the answer has ${byteLength} bytes, more than ${maxBytes}: ${how}`);
}

function answering<Request extends object, Response>(
  method: MethodCodec<Request, Response>,
  answer: (
    request: Request,
    context: CallContext,
  ) => Promise<{ readonly response: Response; readonly head: AnswerHead }>,
) {
  return async (bytes: Buffer, context: CallContext): Promise<EncodedAnswer> => {
    const request = decodedRequest(method, bytes);
    const { response, head } = await answer(request, context);
    const encoded = method.responseSerialize(response);
    assertFits(encoded, request);
    return { head, bytes: encoded };
  };
}

function listAnswer<List extends { readonly position: string }>(list: List) {
  return { response: list, head: { position: list.position } };
}

/** What gRPC's libraries accept by default. */
const defaultMessageBytes = 4 * 1024 * 1024;

async function* rendered(messages: SubscriptionMessages, maxBytes: number) {
  for await (const some of messages) yield allOf(some).map((message) => message.protoUpTo(maxBytes));
}

function scopeOf({ source, session, at, min_position }: GetStateRequest): Partial<CallContext> {
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

/** The parameters that every list has. */
function requestsOf(
  list: ListName,
  { filter, labels, artifacts, limit, page, at }: Omit<ListSourcesRequest, "_unknownFields">,
): ListParameters {
  const { kinds = [], ...fields } = fieldsOf(filter);
  const known: readonly string[] = listFields[list];
  for (const field of filterFields) {
    if (known.includes(field) || (filter?.[field] ?? []).length === 0) continue;
    throw invalidArgument(`${list} have no ${field}: the known ones are ${known.join(", ")}`, `filter.${field}`);
  }
  if (limit > largestPage) throw invalidArgument(`limit ${limit} is more than ${largestPage}`, "limit");
  return {
    filter: parseFilter(fields),
    kinds: kinds.map((kind) => (list === "search" ? historyKind : operationKind)(kind, "filter.kinds")),
    labels,
    artifacts,
    limit,
    page,
    ...(at !== "" && { at }),
  };
}
