import { httpStatusOf, invalidArgument, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { WebSocket } from "ws";
import type { z } from "zod";
import { refuseMoment } from "../../../apis/session-scope.ts";
import { placed } from "../../../apis/tapedeck/list-request.ts";
import type { Page } from "../../../apis/tapedeck/lists.ts";
import type { SubscriptionMessage } from "../../../apis/tapedeck/messages.ts";
import { type Asked, filterOf, type Given, readParameters } from "../../../apis/tapedeck/parameters.ts";
import type { SubscribeRequest, TapedeckApi } from "../../../apis/tapedeck/tapedeck-api.ts";
import { UpstreamError } from "../../../apis/upstream-error.ts";
import { type AnswerHead, boundTo, type CallContext } from "../../../call-context.ts";
import type { CallerLimits } from "../../../limits/limits.ts";
import type { CallWatch } from "../../../metrics.ts";
import { liveness } from "../../liveness.ts";
import { toNdjson, toSse } from "../../sse/sse.ts";
import { subprotocol } from "../../websocket/protocol.ts";
import { serveSocket } from "../../websocket/websocket.ts";
import { closedSignal, contextOf, type HttpCaller, setHead } from "../call-context.ts";
import { cloudEventsBatch, nextLink, toCloudEvent } from "../cloud-events.ts";
import { errorEvent, errorLine, isEventSource, sendComeAgain } from "../event-source.ts";
import { writeStream } from "../write-stream.ts";
import { type DescribedRoute, eventStream, json, ndjson, routes } from "./openapi-routes.ts";

/** An event stream says something at least this often, for proxies. */
const commentMs = 15_000;

export type ApiRouteOptions = {
  /** The source of a listener that serves only one: then events and state of it are all there is. */
  readonly bound?: string | undefined;
  readonly watch: CallWatch;
  readonly limits: Pick<CallerLimits, "live" | "requests" | "unreadBytes" | "webSocket">;
};

/** Tapedeck's own API under /api/v1 (DESIGN 7), as openapi-routes.ts describes it. */
export function apiRoutes(
  app: FastifyInstance,
  api: TapedeckApi,
  caller: HttpCaller,
  { bound, watch, limits }: ApiRouteOptions,
): void {
  const get = <Parameters extends z.ZodObject>(
    route: DescribedRoute & { readonly parameters: Parameters },
    answer: (call: ApiCall<z.infer<Parameters>>) => Promise<FastifyReply>,
  ) => {
    if (bound !== undefined && !ofOneSource.has(route)) return;
    app.route({
      method: ["GET", "HEAD"],
      url: route.path,
      handler: async (request, reply) => {
        try {
          const context = boundTo(bound, contextOf(request, caller(request), closedSignal(reply)));
          const asked = readParameters(route.parameters, request.query as Given);
          return await answer({ request, reply, context, asked });
        } catch (error) {
          return sendError(reply, told(error));
        }
      },
    });
    refuseOthers(route.path, ["GET", "HEAD"]);
  };

  get(routes.sources, async ({ reply, context, asked }) => sendPage(reply, await api.lists.sources(context, asked)));
  get(routes.sessions, async ({ reply, context, asked }) => sendPage(reply, await api.lists.sessions(context, asked)));
  get(routes.operations, async ({ reply, context, asked }) =>
    sendPage(reply, await api.lists.operations(context, asked)),
  );
  get(routes.buildStats, async ({ reply, context, asked }) =>
    sendPage(reply, await api.lists.buildStats(context, asked)),
  );

  get(routes.state, async ({ reply, context }) => {
    const state = await api.state(context);
    const { position, session, sessionEnded, notHeardSince } = state;
    return send(reply, state, {
      ...{ position, sessionEnded },
      ...(session !== null && { session }),
      ...(notHeardSince !== null && { notHeardSince }),
    });
  });

  get(routes.events, async (call) => {
    const { request, reply, context, asked } = call;
    const { until, limit = 100, last, original = false } = asked;
    const { after = "start" } = context;
    if (accepts(request, ndjson)) {
      refuse(asked, ["limit", "last"], "goes with pages: ask for application/json, or stream all of it");
      return stream(call, { after, until: until ?? "now", isHistory: true, original }, ndjson);
    }
    refuse(asked, ["speed"], `goes with streams: ask for ${ndjson}`);
    refuseMoment(context, "events have no `at`: use `until` to say where they end");
    const page = await api.events({
      workspace: context.workspace,
      filter: placed(filterOf(sourced(asked, context)), context),
      after,
      ...(until !== undefined && { until }),
      limit,
      ...(last !== undefined && { last }),
      original,
      signal: context.signal,
    });
    if (!accepts(request, cloudEventsBatch)) return sendPage(reply, page);
    if (page.nextPage !== undefined) reply.header("link", nextLink(request.url, page.nextPage));
    return send(reply, page.items.map(toCloudEvent), page, cloudEventsBatch);
  });

  get(routes.stream, async (call) => {
    const { until, state = false, original = false } = call.asked;
    // EventSource repeats the URL when it reconnects, so the position that it has seen wins.
    const seen = call.request.headers["last-event-id"];
    const after = typeof seen === "string" && seen !== "" ? { after: seen } : {};
    const type = accepts(call.request, ndjson) ? ndjson : eventStream;
    try {
      return await stream(call, { ...after, ...(until !== undefined && { until }), state, original }, type);
    } catch (error) {
      const known = told(error);
      return isEventSource(call.request) && known.retryAfter !== undefined
        ? sendComeAgain(call.reply, known, known.retryAfter)
        : sendError(call.reply, known);
    }
  });

  if (bound !== undefined) return;
  app.route({
    method: "GET",
    url: routes.ws.path,
    wsHandler: (socket, request) => {
      if (!isSpoken(request)) socket.close(1002, `this server speaks ${subprotocol}`);
      else serve(socket, request);
    },
    handler: async (_request, reply) => {
      reply.header("upgrade", "websocket").code(426);
      const message = `this is a WebSocket: connect with the subprotocol ${subprotocol}`;
      return reply.send({ error: { code: "invalid_argument", message } });
    },
  });
  refuseOthers(routes.ws.path, ["GET"]);

  /** On a listener for one source a filter is about that, whatever else it says. */
  function sourced<Filtered extends Asked<"events"> | Asked<"stream">>(
    asked: Filtered,
    context: CallContext,
  ): Filtered {
    if (bound === undefined) return asked;
    for (const source of asked.source ?? []) boundTo(bound, { ...context, source });
    return { ...asked, source: [bound] };
  }

  function serve(socket: WebSocket, request: FastifyRequest): void {
    const counted = { caller: caller(request), peer: request.ip };
    serveSocket(socket, {
      api,
      caller: counted.caller,
      watch,
      tcp: request.raw.socket,
      limits: { ...liveness, unread: limits.unreadBytes, subscriptions: limits.webSocket.subscriptions },
      usage: {
        open: (over) => limits.live.take(counted, over),
        message: () => limits.requests.take(counted),
      },
    });
  }

  async function stream(
    { asked, context, request, reply }: ApiCall<Asked<"events"> | Asked<"stream">>,
    wanted: Omit<SubscribeRequest, "filter">,
    type: typeof ndjson | typeof eventStream,
  ): Promise<FastifyReply> {
    limits.live.take({ caller: context, peer: request.ip }, context.signal);
    const { speed = "max" } = asked;
    const { position, messages } = await api.subscribe(
      { ...wanted, speed, filter: filterOf(sourced(asked, context)) },
      context,
    );
    setHead(reply, { position }).headers({ "content-type": type, "cache-control": "no-cache" });
    // What it would begin with, and no more.
    if (request.method === "HEAD") return reply.send();
    await writeStream(reply, context.signal, {
      headers: {},
      chunks: rendered(messages, type === ndjson ? toNdjson : toSse),
      lastWords: (error) => (type === ndjson ? errorLine : errorEvent)(told(error)),
      sent: watch.sent,
      unreadBytes: limits.unreadBytes,
      ...(type === eventStream && { idle: { ms: commentMs, text: ":\n\n" } }),
    });
    return reply;
  }

  function sendPage(reply: FastifyReply, page: Page<object>): FastifyReply {
    return send(reply, page, page);
  }

  function send(reply: FastifyReply, body: object, head: AnswerHead, type: string = json): FastifyReply {
    const text = JSON.stringify(body);
    watch.sent(Buffer.byteLength(text));
    return setHead(reply, head).type(type).send(text);
  }

  function refuseOthers(url: string, allowed: readonly string[]): void {
    app.route({
      method: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter(
        (method) => !allowed.includes(method),
      ),
      url,
      handler: async ({ method }, reply) => {
        const error = invalidArgument(`${url} can't be asked by ${method}: use GET`);
        return sendError(reply.header("allow", allowed.join(", ")), told(error), 405);
      },
    });
  }

  /** An upstream has no say here. */
  function told(error: unknown): TapedeckError {
    const known = watch.failed(error);
    return known instanceof UpstreamError ? new TapedeckError("internal", "internal error") : known;
  }
}

const ofOneSource: ReadonlySet<DescribedRoute> = new Set([routes.state, routes.events, routes.stream]);

type ApiCall<Parameters> = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly context: CallContext;
  readonly asked: Parameters;
};

/** @throws TapedeckError invalid_argument when one of these was asked for */
function refuse<Asked extends object>(asked: Asked, fields: readonly (keyof Asked & string)[], why: string): void {
  const field = fields.find((name) => asked[name] !== undefined);
  if (field !== undefined) throw invalidArgument(`${field} ${why}`, field);
}

function accepts({ headers }: FastifyRequest, type: string): boolean {
  return (headers.accept ?? "").includes(type);
}

function isSpoken({ headers }: FastifyRequest): boolean {
  const offered = headers["sec-websocket-protocol"];
  return offered === undefined || offered.split(",").some((name) => name.trim() === subprotocol);
}

async function* rendered(messages: AsyncIterable<SubscriptionMessage>, render: (m: SubscriptionMessage) => string) {
  for await (const message of messages) yield render(message);
}

function sendError(reply: FastifyReply, error: TapedeckError, status = httpStatusOf(error.code)): FastifyReply {
  if (error.retryAfter !== undefined) reply.header("retry-after", error.retryAfter);
  return reply.code(status).send({ error: toErrorBody(error) });
}
