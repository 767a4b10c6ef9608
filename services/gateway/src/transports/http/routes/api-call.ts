import type { FastifyReply, FastifyRequest } from "fastify";
import type { Page } from "../../../apis/tapedeck/lists.ts";
import { filterOf, type ParametersOf } from "../../../apis/tapedeck/parameters.ts";
import type { TapedeckApi } from "../../../apis/tapedeck/tapedeck-api.ts";
import { type AnswerHead, boundTo, type CallContext } from "../../../call-context.ts";
import type { CallerLimits } from "../../../limits/limits.ts";
import type { CallWatch } from "../../../metrics.ts";
import { type HttpCaller, setHead } from "../call-context.ts";
import { json } from "./openapi-routes.ts";

/** The dependencies of every route of our own API. */
export type ApiRouteDeps = {
  readonly api: TapedeckApi;
  readonly caller: HttpCaller;
  /** The source of a listener that serves only one: then only events and state are served. */
  readonly bound?: string | undefined;
  readonly watch: CallWatch;
  /** The longest silence of a stream; by default that of all streams. */
  readonly idleMs?: number | undefined;
  readonly limits: Pick<CallerLimits, "live" | "requests" | "unreadBytes" | "webSocket">;
};

/** A request whose parameters are valid. */
export type ApiCall<Parameters> = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly context: CallContext;
  readonly parameters: Parameters;
};

export function accepts({ headers }: FastifyRequest, type: string): boolean {
  return (headers.accept ?? "").includes(type);
}

/**
 * The filter of a request. On a listener for one source it applies to that source, whatever else it contains.
 * @throws TapedeckError invalid_argument for a value that is wrong, or a source that the listener does not serve
 */
export function requestedFilter(
  { bound }: Pick<ApiRouteDeps, "bound">,
  parameters: ParametersOf<"events"> | ParametersOf<"stream">,
  context: CallContext,
) {
  if (bound === undefined) return filterOf(parameters);
  for (const source of parameters.source ?? []) boundTo(bound, { ...context, source });
  return filterOf({ ...parameters, source: [bound] });
}

export type BodyAnswer = { readonly body: object; readonly head: AnswerHead; readonly type?: string };

export function sendBody(watch: CallWatch, reply: FastifyReply, { body, head, type = json }: BodyAnswer): FastifyReply {
  const text = JSON.stringify(body);
  watch.sent(Buffer.byteLength(text));
  return setHead(reply, head).type(type).send(text);
}

export function sendPage(watch: CallWatch, reply: FastifyReply, page: Page<object>): FastifyReply {
  return sendBody(watch, reply, { body: page, head: page });
}
