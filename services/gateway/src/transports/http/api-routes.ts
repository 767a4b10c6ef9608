import { httpStatusOf, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { WebSocket } from "ws";
import { filterOf, filterParameters, listParameters, numberOf, type Parameters } from "../../apis/tapedeck/lists.ts";
import type { SubscriptionMessage } from "../../apis/tapedeck/messages.ts";
import type { TapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import { UpstreamError } from "../../apis/upstream-error.ts";
import type { CallContext } from "../../call-context.ts";
import type { CallerLimits } from "../../limits/limits.ts";
import type { CallWatch } from "../../metrics.ts";
import { liveness } from "../liveness.ts";
import { toNdjson, toSse } from "../sse/sse.ts";
import { subprotocol } from "../websocket/protocol.ts";
import { serveSocket } from "../websocket/websocket.ts";
import { closedSignal, contextOf, type HttpCaller } from "./call-context.ts";
import { writeStream } from "./write-stream.ts";

const ndjson = "application/x-ndjson";
const filters = Object.keys(filterParameters);

/** An event stream says something at least this often, for proxies. */
const commentMs = 15_000;

const listPaths = {
  sources: "sources",
  sessions: "sessions",
  operations: "operations",
  buildStats: "stats/builds",
} as const;

export type ApiRouteOptions = {
  readonly watch: CallWatch;
  readonly limits: Pick<CallerLimits, "live" | "requests" | "unreadBytes" | "webSocket">;
};

/** Tapedeck's own API under /api/v1 (DESIGN 7). */
export function apiRoutes(
  app: FastifyInstance,
  api: TapedeckApi,
  caller: HttpCaller,
  { watch, limits }: ApiRouteOptions,
): void {
  const get = (path: string, known: readonly string[], answer: (call: ApiCall) => Promise<object | undefined>) => {
    app.get(`/api/v1/${path}`, async (request, reply) => {
      try {
        const context = contextOf(request, caller(request), closedSignal(reply));
        const result = await answer({ request, reply, context, parameters: parametersOf(request, known) });
        if (result === undefined) return reply;
        const text = JSON.stringify(result);
        watch.sent(Buffer.byteLength(text));
        return reply.type("application/json").send(text);
      } catch (error) {
        return sendError(reply, told(error));
      }
    });
  };

  for (const [name, path] of Object.entries(listPaths) as [keyof typeof listPaths, string][]) {
    get(path, listParameters[name], ({ context, parameters }) => api.lists[name](context.workspace, parameters));
  }

  get("state", ["source", "session", "at", "min_position"], ({ context }) => api.state(context));

  get("events", [...filters, "after", "until", "limit", "last", "original"], async (call) => {
    const { context, parameters } = call;
    const { after = "start", until, original } = asked(parameters);
    if (accepts(call, ndjson)) {
      refusePaging(parameters);
      await stream(call, { after, until: until ?? "now", original });
      return undefined;
    }
    const last = numberOf(parameters, "last");
    return api.events({
      workspace: context.workspace,
      filter: filterOf(parameters),
      after,
      ...(until !== undefined && { until }),
      limit: numberOf(parameters, "limit") || 100,
      ...(last > 0 && { last }),
      original,
      signal: context.signal,
    });
  });

  get("stream", [...filters, "after", "until", "state", "original"], async (call) => {
    const { state, original, ...range } = asked(call.parameters);
    // EventSource repeats the URL when it reconnects, so the position that it has seen wins.
    const resumed = call.request.headers["last-event-id"];
    const after = typeof resumed === "string" && resumed !== "" ? { after: resumed } : {};
    await stream(call, { ...range, ...after, state, original });
    return undefined;
  });

  app.route({
    method: "GET",
    url: "/api/v1/ws",
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

  type Asked = {
    readonly after?: string;
    readonly until?: string;
    readonly state?: boolean;
    readonly original: boolean;
  };

  async function stream({ parameters, context, reply, ...call }: ApiCall, request: Asked): Promise<void> {
    limits.live.take({ caller: context, peer: call.request.ip }, context.signal);
    const filter = filterOf(parameters);
    const { position, messages } = await api.subscribe({ ...request, filter }, context);
    const asLines = accepts(call, ndjson);
    await writeStream(reply, context.signal, {
      headers: {
        "content-type": asLines ? ndjson : "text/event-stream",
        "cache-control": "no-cache",
        "tapedeck-position": position,
      },
      chunks: rendered(messages, asLines ? toNdjson : toSse),
      lastWords: (error) => (asLines ? errorLine : errorEvent)(told(error)),
      sent: watch.sent,
      unreadBytes: limits.unreadBytes,
      ...(!asLines && { idle: { ms: commentMs, text: ":\n\n" } }),
    });
  }

  /** An upstream has no say here. */
  function told(error: unknown): TapedeckError {
    const known = watch.failed(error);
    return known instanceof UpstreamError ? new TapedeckError("internal", "internal error") : known;
  }
}

type ApiCall = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly context: CallContext;
  readonly parameters: Parameters;
};

function asked(parameters: Parameters) {
  const after = parameters.after?.at(-1);
  const until = parameters.until?.at(-1);
  return {
    ...(after !== undefined && { after }),
    ...(until !== undefined && { until }),
    state: flagOf(parameters, "state"),
    original: flagOf(parameters, "original"),
  };
}

function flagOf(parameters: Parameters, name: string): boolean {
  const text = parameters[name]?.at(-1) ?? "false";
  if (text === "true" || text === "false") return text === "true";
  throw new TapedeckError("invalid_argument", `${name} "${text}" is not true or false`, { field: name });
}

function refusePaging(parameters: Parameters): void {
  for (const field of ["limit", "last"]) {
    if (parameters[field] === undefined) continue;
    const message = `${field} goes with pages: ask for application/json, or stream all of it`;
    throw new TapedeckError("invalid_argument", message, { field });
  }
}

function accepts({ request }: Pick<ApiCall, "request">, type: string): boolean {
  return (request.headers.accept ?? "").includes(type);
}

function isSpoken({ headers }: FastifyRequest): boolean {
  const offered = headers["sec-websocket-protocol"];
  return offered === undefined || offered.split(",").some((name) => name.trim() === subprotocol);
}

async function* rendered(messages: AsyncIterable<SubscriptionMessage>, render: (m: SubscriptionMessage) => string) {
  for await (const message of messages) yield render(message);
}

function errorLine(error: TapedeckError): string {
  return `${JSON.stringify({ type: "error", error: toErrorBody(error) })}\n`;
}

function errorEvent(error: TapedeckError): string {
  return `event: error\ndata: ${errorLine(error)}\n`;
}

function sendError(reply: FastifyReply, error: TapedeckError): FastifyReply {
  if (error.retryAfter !== undefined) reply.header("retry-after", error.retryAfter);
  return reply.code(httpStatusOf(error.code)).send({ error: toErrorBody(error) });
}

/** Every value of every parameter; one that the path does not know is an error, not silently nothing. */
function parametersOf(request: FastifyRequest, known: readonly string[]): Parameters {
  const query = request.query as Record<string, string | string[]>;
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      if (!known.includes(name)) {
        const message = `there is no parameter "${name}" here: known are ${known.join(", ")}`;
        throw new TapedeckError("invalid_argument", message, { field: name });
      }
      return [name, Array.isArray(value) ? value : [value]];
    }),
  );
}
