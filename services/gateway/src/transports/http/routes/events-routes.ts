import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { FastifyReply } from "fastify";
import { refuseAt } from "../../../apis/session-scope.ts";
import { placed } from "../../../apis/tapedeck/list-request.ts";
import { allOf, type SubscriptionMessage, type SubscriptionMessages } from "../../../apis/tapedeck/messages.ts";
import type { ParametersOf } from "../../../apis/tapedeck/parameters.ts";
import type { SubscribeRequest } from "../../../apis/tapedeck/tapedeck-api.ts";
import { toNdjson, toSse } from "../../sse/sse.ts";
import { setHead } from "../call-context.ts";
import { cloudEventsBatch, nextLink, toCloudEvent } from "../cloud-events.ts";
import { ownError, sendError } from "../error-answers.ts";
import { errorEvent, errorLine, isEventSource, sendRetryLater } from "../event-source.ts";
import { inWrites } from "../in-writes.ts";
import { writeStream } from "../write-stream.ts";
import { type ApiCall, type ApiRouteDeps, accepts, requestedFilter, sendBody, sendPage } from "./api-call.ts";
import { eventStream, ndjson } from "./openapi-routes.ts";

/** GET /api/v1/events: a page of history, as JSON or CloudEvents, or all of it as NDJSON. */
export async function answerEvents(deps: ApiRouteDeps, call: ApiCall<ParametersOf<"events">>): Promise<FastifyReply> {
  const { request, reply, context, parameters } = call;
  const { until, limit = 100, last, original = false } = parameters;
  const { after = "start" } = context;
  if (accepts(request, ndjson)) {
    refuse(parameters, ["limit", "last"], "is only for pages: request application/json, or stream all events");
    return sendStream(deps, call, { after, until: until ?? "now", isHistory: true, original }, ndjson);
  }
  refuse(parameters, ["speed"], `is only for streams: request ${ndjson}`);
  refuseAt(context, "events have no `at`: use `until` to set where they end");
  const pageRequest = {
    workspace: context.workspace,
    filter: placed(requestedFilter(deps, parameters, context), context),
    after,
    ...(until !== undefined && { until }),
    limit,
    ...(last !== undefined && { last }),
    original,
    signal: context.signal,
  };
  const page = await deps.api.events(pageRequest, context);
  if (!accepts(request, cloudEventsBatch)) return sendPage(deps.watch, reply, page);
  if (page.nextPage !== undefined) reply.header("link", nextLink(request.url, page.nextPage));
  return sendBody(deps.watch, reply, { body: page.items.map(toCloudEvent), head: page, type: cloudEventsBatch });
}

/** GET /api/v1/stream: history, then live, as server-sent events or NDJSON. */
export async function answerStream(deps: ApiRouteDeps, call: ApiCall<ParametersOf<"stream">>): Promise<FastifyReply> {
  const { request, reply } = call;
  const { until, state = false, original = false } = call.parameters;
  // EventSource repeats the URL when it reconnects, so the position that it has received wins.
  const lastId = request.headers["last-event-id"];
  const after = typeof lastId === "string" && lastId !== "" ? { after: lastId } : {};
  const type = accepts(request, ndjson) ? ndjson : eventStream;
  try {
    return await sendStream(deps, call, { ...after, ...(until !== undefined && { until }), state, original }, type);
  } catch (error) {
    const known = ownError(deps.watch, error);
    return isEventSource(request) && known.retryAfter !== undefined
      ? sendRetryLater(reply, known, known.retryAfter)
      : sendError(reply, known);
  }
}

async function sendStream(
  deps: ApiRouteDeps,
  { parameters, context, request, reply }: ApiCall<ParametersOf<"events"> | ParametersOf<"stream">>,
  subscription: Omit<SubscribeRequest, "filter">,
  type: typeof ndjson | typeof eventStream,
): Promise<FastifyReply> {
  const { api, limits, watch } = deps;
  limits.live.take({ caller: context, peer: request.ip }, context.signal);
  const { speed = "max" } = parameters;
  const filter = requestedFilter(deps, parameters, context);
  const { position, messages } = await api.subscribe({ ...subscription, speed, filter }, context);
  setHead(reply, { position }).header("content-type", type);
  if (request.method === "HEAD") return reply.send();
  const lines = new RenderedMessages(position, type === ndjson ? toNdjson : toSse, limits.unreadBytes);
  await writeStream(reply, context.signal, {
    headers: {},
    chunks: lines.of(messages),
    lastWords: (error) => (type === ndjson ? errorLine : errorEvent)(ownError(watch, error)),
    sent: watch.sent,
    unreadBytes: limits.unreadBytes,
    idle: { ms: deps.idleMs, text: () => (type === ndjson ? lines.bookmark() : ":\n\n") },
  });
  return reply;
}

/** @throws TapedeckError invalid_argument when one of these was asked for */
function refuse<Parameters extends object>(
  parameters: Parameters,
  fields: readonly (keyof Parameters & string)[],
  why: string,
): void {
  const field = fields.find((name) => parameters[name] !== undefined);
  if (field !== undefined) throw invalidArgument(`${field} ${why}`, field);
}

/** Messages as text, and the position up to which they were written. */
class RenderedMessages {
  readonly #render: (message: SubscriptionMessage) => string;
  readonly #unreadBytes: number;
  #position: string;

  constructor(position: string, render: (message: SubscriptionMessage) => string, unreadBytes: number) {
    this.#position = position;
    this.#render = render;
    this.#unreadBytes = unreadBytes;
  }

  async *of(messages: SubscriptionMessages): AsyncGenerator<string, void> {
    for await (const some of messages) {
      const all = allOf(some);
      yield* inWrites(all.map(this.#render), this.#unreadBytes);
      this.#position = all.at(-1)?.position ?? this.#position;
    }
  }

  /** NDJSON has no comments, so a silence is broken by a line that every client knows. */
  bookmark(): string {
    return toNdjson({ json: JSON.stringify({ type: "bookmark", position: this.#position }) });
  }
}
