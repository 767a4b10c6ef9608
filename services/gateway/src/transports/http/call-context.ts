import type { FastifyReply, FastifyRequest } from "fastify";
import { type AnswerHead, type CallContext, contextNames, headEntries } from "../../call-context.ts";

const parameters = {
  source: "source",
  session: "session",
  at: "at",
  after: "after",
  minPosition: "min_position",
} as const;

/** Reads what a call means from query parameters, or headers of the same names as gRPC's metadata. */
export function contextOf(
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Pick<CallContext, "workspace" | "who">,
): CallContext {
  const query = request.query as Record<string, string | string[] | undefined>;
  const fields = Object.entries(contextNames).flatMap(([field, name]) => {
    const parameter = query[parameters[field as keyof typeof parameters]];
    const found = (Array.isArray(parameter) ? parameter.at(-1) : parameter) ?? request.headers[name];
    return typeof found === "string" && found !== "" ? [[field, found] as const] : [];
  });
  return { ...caller, signal: closedSignal(reply), ...Object.fromEntries(fields) };
}

export function setHead(reply: FastifyReply, head: AnswerHead): FastifyReply {
  return reply.headers(Object.fromEntries(headEntries(head)));
}

/** Aborts when the client is gone or the answer is complete. */
export function closedSignal(reply: FastifyReply): AbortSignal {
  const closed = new AbortController();
  reply.raw.once("close", () => closed.abort());
  if (reply.raw.destroyed) closed.abort();
  return closed.signal;
}
