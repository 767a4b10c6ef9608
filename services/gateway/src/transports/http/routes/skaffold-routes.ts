import type { DescMessage } from "@bufbuild/protobuf";
import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { EncodedBatches } from "../../../apis/encoded-answer.ts";
import { requestFromBody } from "../../../apis/skaffold/control-call.ts";
import { BadBodyError, refusedBody } from "../../../apis/skaffold/errors.ts";
import {
  type ControlMethod,
  channelMessageTypes,
  type SkaffoldMethod,
  type StreamMethod,
  skaffoldMethods,
  stateMessageTypes,
} from "../../../apis/skaffold/methods.ts";
import { readRequestBody } from "../../../apis/skaffold/request-body.ts";
import type { SkaffoldApi } from "../../../apis/skaffold/skaffold-api.ts";
import { mayAs } from "../../../auth/roles.ts";
import { boundTo, type CallContext } from "../../../call-context.ts";
import type { CallerLimits } from "../../../limits/limits.ts";
import type { CallWatch } from "../../../metrics.ts";
import { closedSignal, contextOf, type HttpCaller, setHead } from "../call-context.ts";
import { deadlineExceeded, deadlineMs, withDeadline } from "../grpc-timeout.ts";
import { jsonBytes, methodNotAllowed, sendSkaffold, skaffoldErrorOf } from "../skaffold-errors.ts";
import { writeStream } from "../write-stream.ts";

export type SkaffoldRouteOptions = {
  /** The source of a listener that serves only one. */
  readonly bound?: string | undefined;
  readonly watch: CallWatch;
  readonly limits: Pick<CallerLimits, "live">;
};

const verbs = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const form = "application/x-www-form-urlencoded";

/** grpc-gateway adds this header to every answer. */
const fromGrpc = { "grpc-metadata-content-type": "application/grpc" };

/** Skaffold's own paths with Skaffold's own JSON (docs/upstreams/skaffold.md#methods), answered from the record. */
export function skaffoldRoutes(
  app: FastifyInstance,
  api: SkaffoldApi,
  caller: HttpCaller,
  options: SkaffoldRouteOptions,
): void {
  const answers = new SkaffoldAnswers(api, options);
  for (const method of skaffoldMethods) {
    const { verb, path } = method.http;
    app.route({
      method: verbs,
      url: path,
      handler: async (request, reply) => {
        try {
          if (!isFor(verb, request)) return sendSkaffold(reply, methodNotAllowed.status, methodNotAllowed.body);
          const context = boundTo(options.bound, contextOf(request, caller(request), closedSignal(reply)));
          return await answers.answer(method, context, request, reply);
        } catch (error) {
          const { status, body } = answers.refusal(error);
          if (error instanceof TapedeckError && error.retryAfter !== undefined) {
            reply.header("retry-after", error.retryAfter);
          }
          return sendSkaffold(reply, status, body);
        }
      },
    });
  }
}

class SkaffoldAnswers {
  readonly #api: SkaffoldApi;
  readonly #options: SkaffoldRouteOptions;

  constructor(api: SkaffoldApi, options: SkaffoldRouteOptions) {
    this.#api = api;
    this.#options = options;
  }

  async answer(method: SkaffoldMethod, context: CallContext, request: FastifyRequest, reply: FastifyReply) {
    const api = this.#api;
    const deadline = deadlineMs(request.headers["grpc-timeout"]);
    switch (method.kind) {
      case "stream":
        await this.#stream(method, context, deadline, reply);
        return reply;
      case "state": {
        const { head, bytes } = await withDeadline(api.getState(method, context), deadline);
        return this.#send(setHead(reply, head), toGatewayJson(messageType(stateMessageTypes[method.api]), bytes));
      }
      case "control": {
        // A body may take long to read. A caller that may not call is refused without that.
        const body = typeof request.body === "string" ? request.body : "";
        const message = mayAs("controller", context) ? requestOf(method, body) : new Uint8Array();
        const { head } = await withDeadline(api.control(method, message, context), deadline);
        return this.#send(head === undefined ? reply : setHead(reply, head), {});
      }
    }
  }

  refusal(error: unknown) {
    return skaffoldErrorOf(this.#options.watch.failed(error));
  }

  #send(reply: FastifyReply, body: object): FastifyReply {
    const bytes = jsonBytes(body);
    this.#options.watch.sent(bytes.byteLength);
    return sendSkaffold(reply.headers(fromGrpc), 200, bytes);
  }

  async #stream(
    method: StreamMethod,
    context: CallContext,
    deadline: number | undefined,
    reply: FastifyReply,
  ): Promise<void> {
    const { limits, watch } = this.#options;
    limits.live.take({ caller: context, peer: reply.request.ip }, context.signal);
    const late = deadline === undefined ? undefined : timeoutSignal(Math.max(0, Math.ceil(deadline)));
    const signal = late === undefined ? context.signal : AbortSignal.any([context.signal, late]);
    const { head, messages } = await withDeadline(this.#api.events(method, { ...context, signal }), deadline);
    setHead(reply, head);
    await writeStream(reply, context.signal, {
      headers: { ...fromGrpc, "content-type": "application/json" },
      chunks: resultLines(messageType(channelMessageTypes[method.channel]), messages, late),
      lastWords: (error) => `${JSON.stringify({ error: this.refusal(error).body })}\n`,
      sent: watch.sent,
      // Each message is a chunk of its own, as from Skaffold, and is sent when the client has taken the one before.
      unreadBytes: 0,
    });
  }
}

function requestOf(method: ControlMethod, body: string): Uint8Array {
  try {
    const message = readRequestBody(messageType(method.bodyType), body);
    return requestFromBody(method, message, body.trim() === "");
  } catch (error) {
    if (error instanceof BadBodyError) throw refusedBody(error);
    throw error;
  }
}

async function* resultLines(desc: DescMessage, frames: EncodedBatches["messages"], late: AbortSignal | undefined) {
  for await (const some of frames) {
    for (const frame of some) {
      const line = resultLine(desc, frame);
      if (line !== undefined) yield line;
    }
  }
  if (late?.aborted) throw deadlineExceeded();
}

// All readers share live frames, so each is rendered once.
const rendered = new WeakMap<Uint8Array, string | undefined>();

/** Undefined for an event without a JSON form, such as one with a time in the year 10000: it must not end every stream. */
function resultLine(desc: DescMessage, frame: Uint8Array): string | undefined {
  if (!rendered.has(frame)) {
    try {
      rendered.set(frame, `${goJson({ result: toGatewayJson(desc, frame) })}\n`);
    } catch {
      rendered.set(frame, undefined);
    }
  }
  return rendered.get(frame);
}

/** Go's encoding/json writes these characters escaped. */
function goJson(value: unknown): string {
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** grpc-gateway serves a form POST to a GET path as that GET, with or without X-HTTP-Method-Override. */
function isFor(verb: string, request: FastifyRequest): boolean {
  if (request.method === verb) return true;
  return verb === "GET" && request.method === "POST" && (request.headers["content-type"] ?? "").startsWith(form);
}
