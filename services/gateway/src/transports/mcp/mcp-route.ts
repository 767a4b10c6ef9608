import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { mayAs } from "../../auth/roles.ts";
import { revocationOf, whileAuthorized } from "../../call-context.ts";
import type { CallerLimits } from "../../limits/limits.ts";
import type { CallWatch } from "../../metrics.ts";
import type { RecordApis } from "../../workspaces/routed-apis.ts";
import { closedSignal, type HttpCaller } from "../http/call-context.ts";

export type McpRouteOptions = {
  readonly watch: CallWatch;
  readonly limits: Pick<CallerLimits, "live">;
  readonly isTls: boolean;
  /** The page's address, where a setting names it. Default: as the caller reaches this gateway. */
  readonly page?: string | undefined;
};

export const mcpPath = "/mcp";

/** With this header, `true`, a caller with the role of a controller gets the tools that change an upstream. */
export const triggerHeader = "tapedeck-allow-trigger";

/**
 * The Model Context Protocol over streamable HTTP, without sessions: every request stands alone. Its code is loaded with
 * the first request, because most gateways never get one.
 */
export function mcpRoute(
  app: FastifyInstance,
  apis: Pick<RecordApis, "tapedeck" | "skaffold">,
  caller: HttpCaller,
  { watch, limits, isTls, page: givenPage }: McpRouteOptions,
): void {
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    if (isBatch(request.body)) return reply.code(400).send(noBatches);
    const [{ createMcpHandler, isLegacyRequest }, { mcpServer }] = await Promise.all([
      import("@modelcontextprotocol/server"),
      import("../../apis/mcp/mcp-server.ts"),
    ]);
    const who = caller(request);
    const context = { ...who, signal: whileAuthorized(closedSignal(reply), who) };
    const origin = `${isTls ? "https" : "http"}://${request.headers.host}`;
    const page = givenPage ?? origin;
    const waits = once(() => limits.live.take({ caller: who, peer: request.ip }, context.signal));
    const mayControl = request.headers[triggerHeader] === "true" && mayAs("controller", who);
    const server = () => mcpServer({ context, apis, page, waits }, { mayControl, failed: watch.failed });
    const toLibrary = webRequest(request, origin, context.signal);
    // Clients of 2025 get their answers as event streams: one too many is refused before a tool has done anything.
    if (request.method === "POST" && (await isLegacyRequest(toLibrary))) waits();
    const response = await createMcpHandler(server).fetch(toLibrary);
    // The library knows only that the call is over, and its answer says nothing.
    const revocation = response.ok ? undefined : revocationOf(context.signal);
    if (revocation !== undefined) throw revocation;
    if (response.headers.get("content-type") === "text/event-stream") waits();
    return reply.send(response);
  };
  app.route({ method: ["GET", "POST", "DELETE"], url: mcpPath, handler });
}

/** One request may not run many tools. MCP had batches for three months of 2025. */
const noBatches = {
  jsonrpc: "2.0",
  id: null,
  error: { code: -32600, message: "batches are not supported: send each message in a request of its own" },
};

/** Nothing else in JSON begins so; a byte order mark before it counts as a space. */
function isBatch(body: unknown): boolean {
  return typeof body === "string" && body.trimStart().startsWith("[");
}

/** Calls it the first time; again only if it threw. */
function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    act();
    isDone = true;
  };
}

function webRequest({ method, headers, body }: FastifyRequest, origin: string, signal: AbortSignal): Request {
  const given = Object.entries(headers).flatMap(([name, value = []]) =>
    [value].flat().map((one): [string, string] => [name, one]),
  );
  const content = typeof body === "string" ? { body } : {};
  return new Request(`${origin}${mcpPath}`, { method, headers: given, signal, ...content });
}
