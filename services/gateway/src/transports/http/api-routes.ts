import { fromUnknown, httpStatusOf, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import { parseFilter } from "@tapedeck/shared/filter/filter";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ListParameters, limitOf } from "../../apis/tapedeck/lists.ts";
import type { SubscriptionMessage } from "../../apis/tapedeck/subscribe.ts";
import type { TapedeckApi } from "../../apis/tapedeck/tapedeck-api.ts";
import { toNdjson, toSse } from "../sse/sse.ts";
import { serveSocket, subprotocol } from "../websocket/websocket.ts";
import { closedSignal, contextOf } from "./call-context.ts";
import type { HttpCaller } from "./skaffold-routes.ts";
import { writeStream } from "./write-stream.ts";

const ndjson = "application/x-ndjson";

/** Query parameters that are filter fields: singular in URLs, plural in a filter. */
const filterFields = {
  developer: "developers",
  project: "projects",
  upstream: "upstreams",
  source: "sources",
  session: "sessions",
  kind: "kinds",
  subject: "subjects",
  outcome: "outcomes",
} as const;

const listNames = ["limit", "page", "at", "from", "to", "label"];

/** Tapedeck's own API under /api/v1 (DESIGN 7). */
export function apiRoutes(
  app: FastifyInstance,
  api: TapedeckApi,
  caller: HttpCaller,
  onInternal: (error: unknown) => void,
): void {
  const ownError = (error: unknown): TapedeckError => {
    const own = fromUnknown(error);
    if (own.code === "internal") onInternal(error);
    return own;
  };
  const get = (path: string, known: readonly string[], answer: (call: ApiCall) => Promise<object | undefined>) => {
    app.get(`/api/v1/${path}`, async (request, reply) => {
      try {
        const parameters = parametersOf(request, known);
        const result = await answer({ request, reply, parameters, workspace: caller(request).workspace });
        return result === undefined ? reply : reply.type("application/json").send(result);
      } catch (error) {
        return sendError(reply, ownError(error));
      }
    });
  };
  const fields = Object.keys(filterFields);

  get("sources", [...fields, ...listNames], ({ workspace, parameters }) => api.lists.sources(workspace, parameters));
  get("sessions", [...fields, ...listNames], ({ workspace, parameters }) => api.lists.sessions(workspace, parameters));
  get("operations", [...fields, ...listNames], ({ workspace, parameters }) =>
    api.lists.operations(workspace, parameters),
  );
  get("stats/builds", ["group", "from", "to", "developer", "project", "artifact"], ({ workspace, parameters }) =>
    api.lists.buildStats(workspace, parameters),
  );
  get("state", ["source", "session", "at", "min_position"], ({ request, reply }) =>
    api.state(contextOf(request, reply, caller(request))),
  );

  get("events", [...fields, "after", "until", "limit", "last", "original"], async (call) => {
    const { request, reply, parameters, workspace } = call;
    const filter = filterOf(parameters);
    const original = parameters.original?.at(-1) === "true";
    const after = parameters.after?.at(-1) ?? "start";
    const until = parameters.until?.at(-1);
    const signal = closedSignal(reply);
    if ((request.headers.accept ?? "").includes(ndjson)) {
      const end = until ?? api.written(await api.lastSeq());
      const context = { ...caller(request), signal };
      const { messages } = await api.subscribe({ after, until: end, filter, original }, context);
      await writeStream(reply, { "content-type": ndjson }, lines(messages, toNdjson), (error) =>
        errorLine(ownError(error)),
      );
      return undefined;
    }
    const last = limitOf(parameters, "last");
    return api.events({
      workspace,
      filter: parseFilter(filter),
      after,
      ...(until !== undefined && { until }),
      limit: limitOf(parameters) || 100,
      ...(last > 0 && { last }),
      original,
      signal,
    });
  });

  get("stream", [...fields, "after", "until", "state", "original"], async ({ request, reply, parameters }) => {
    const resumed = request.headers["last-event-id"];
    // EventSource repeats the URL when it reconnects, so the position that it has seen wins.
    const after = (typeof resumed === "string" && resumed !== "" ? resumed : parameters.after?.at(-1)) ?? "now";
    const until = parameters.until?.at(-1);
    const asked = {
      after,
      ...(until !== undefined && { until }),
      filter: filterOf(parameters),
      state: parameters.state?.at(-1) === "true",
      original: parameters.original?.at(-1) === "true",
    };
    const context = { ...caller(request), signal: closedSignal(reply) };
    const { afterSeq, messages } = await api.subscribe(asked, context);
    const asLines = (request.headers.accept ?? "").includes(ndjson);
    const headers = {
      "content-type": asLines ? ndjson : "text/event-stream",
      "cache-control": "no-cache",
      "tapedeck-position": api.written(afterSeq),
    };
    const chunks = asLines ? lines(messages, toNdjson) : lines(messages, toSse);
    await writeStream(reply, headers, chunks, (error) => (asLines ? errorLine : errorEvent)(ownError(error)));
    return undefined;
  });

  app.get("/api/v1/ws", { websocket: true }, (socket, request) => {
    const asked = request.headers["sec-websocket-protocol"];
    if (asked !== undefined && !asked.split(",").some((name) => name.trim() === subprotocol)) {
      socket.close(1002, `this server speaks ${subprotocol}`);
      return;
    }
    serveSocket(socket, api, caller(request), ownError);
  });
}

type ApiCall = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly parameters: ListParameters;
  readonly workspace: string;
};

async function* lines(messages: AsyncIterable<SubscriptionMessage>, render: (m: SubscriptionMessage) => string) {
  for await (const message of messages) yield render(message);
}

function errorLine(error: TapedeckError): string {
  return `${JSON.stringify({ type: "error", error: toErrorBody(error) })}\n`;
}

function errorEvent(error: TapedeckError): string {
  return `event: error\ndata: ${errorLine(error)}\n`;
}

function sendError(reply: FastifyReply, own: TapedeckError): FastifyReply {
  if (own.code === "not_ready") reply.header("retry-after", "1");
  return reply
    .code(httpStatusOf(own.code))
    .type("application/json")
    .send({ error: toErrorBody(own) });
}

/** Every value of every parameter; one that the path does not know is an error, not silently nothing. */
function parametersOf(request: FastifyRequest, known: readonly string[]): ListParameters {
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

function filterOf(parameters: ListParameters): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(filterFields).flatMap(([parameter, field]) => {
      const values = parameters[parameter];
      return values === undefined ? [] : [[field, values]];
    }),
  );
}
