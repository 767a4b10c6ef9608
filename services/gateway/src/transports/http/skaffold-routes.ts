import type { DescMessage } from "@bufbuild/protobuf";
import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { requestFromBody } from "../../apis/skaffold/control-call.ts";
import {
  type ControlMethod,
  channelMessageTypes,
  type SkaffoldMethod,
  type StreamMethod,
  skaffoldMethods,
  stateMessageTypes,
} from "../../apis/skaffold/methods.ts";
import { BadBodyError, readRequestBody } from "../../apis/skaffold/request-body.ts";
import type { SkaffoldApi } from "../../apis/skaffold/skaffold-api.ts";
import { UpstreamError } from "../../apis/upstream-error.ts";
import type { CallContext } from "../../call-context.ts";
import { contextOf, setHead } from "./call-context.ts";
import { deadlineMs, withDeadline } from "./grpc-timeout.ts";
import { methodNotAllowed, skaffoldErrorBody } from "./skaffold-errors.ts";
import { writeStream } from "./write-stream.ts";

export type HttpCaller = (request: FastifyRequest) => Pick<CallContext, "workspace" | "who">;

const verbs = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const form = "application/x-www-form-urlencoded";

/** Skaffold's own paths with Skaffold's own JSON (FACTS 2, 2.1, 2.2), answered from the record. */
export function skaffoldRoutes(
  app: FastifyInstance,
  api: SkaffoldApi,
  caller: HttpCaller,
  { bound, onInternal }: { readonly bound?: string | undefined; readonly onInternal: (error: unknown) => void },
): void {
  for (const method of skaffoldMethods) {
    const { http } = method;
    if (http === undefined) continue;
    app.route({
      method: verbs,
      url: http.path,
      handler: async (request, reply) => {
        if (!isFor(http.verb, request)) return methodNotAllowed(request, reply);
        const body = typeof request.body === "string" ? request.body : "";
        try {
          const read = contextOf(request, reply, caller(request));
          const context = bound === undefined || read.source !== undefined ? read : { ...read, source: bound };
          return await answer(method, context, body, request, reply);
        } catch (error) {
          const { status, body: refusal } = skaffoldErrorBody(error, onInternal);
          return reply.code(status).type("application/json").send(refusal);
        }
      },
    });
  }

  async function answer(
    method: SkaffoldMethod,
    context: CallContext,
    body: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply | undefined> {
    const deadline = deadlineMs(request.headers["grpc-timeout"]);
    switch (method.kind) {
      case "stream":
        await stream(method, context, reply);
        return undefined;
      case "state": {
        const { head, bytes } = await withDeadline(api.getState(method, context), deadline);
        return json(setHead(reply, head), toGatewayJson(messageType(stateMessageTypes[method.api]), bytes));
      }
      case "control": {
        await withDeadline(api.control(method, requestOf(method, body), context), deadline);
        return json(reply, {});
      }
    }
  }

  async function stream(method: StreamMethod, context: CallContext, reply: FastifyReply): Promise<void> {
    const { head, frames } = await api.events(method, context);
    const desc = messageType(channelMessageTypes[method.channel]);
    setHead(reply, head);
    const headers = { "content-type": "application/json", "grpc-metadata-content-type": "application/grpc" };
    await writeStream(reply, headers, resultLines(desc, frames), (error) => {
      const { body } = skaffoldErrorBody(error, onInternal);
      return `${JSON.stringify({ error: body })}\n`;
    });
  }
}

function requestOf(method: ControlMethod, body: string): Uint8Array {
  try {
    const message = readRequestBody(messageType(method.bodyType), body);
    return requestFromBody(method, message, body.trim() === "");
  } catch (error) {
    if (error instanceof BadBodyError) throw new UpstreamError(3, error.message);
    throw error;
  }
}

async function* resultLines(desc: DescMessage, frames: AsyncIterable<Uint8Array>) {
  for await (const frame of frames) yield `${goJson({ result: toGatewayJson(desc, frame) })}\n`;
}

/** Go's encoding/json writes these characters escaped. */
function goJson(value: unknown): string {
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function json(reply: FastifyReply, value: unknown): FastifyReply {
  return reply.header("grpc-metadata-content-type", "application/grpc").type("application/json").send(value);
}

/** grpc-gateway serves a form POST to a GET path as that GET, with or without X-HTTP-Method-Override. */
function isFor(verb: string, request: FastifyRequest): boolean {
  if (request.method === verb) return true;
  return verb === "GET" && request.method === "POST" && (request.headers["content-type"] ?? "").startsWith(form);
}
