import { type TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { eventStream, ndjson, routes } from "./routes/openapi-routes.ts";

/**
 * Whether a request is one of EventSource, which gives up for good on any status but 200, and tells its page nothing of it:
 * it says what it takes, and when it comes back what it has seen.
 */
export function isEventSource({ url, headers }: FastifyRequest): boolean {
  if (url.split("?")[0] !== routes.stream.path) return false;
  const { accept = "", "last-event-id": seen = "" } = headers;
  return !accept.includes(ndjson) && (accept.includes(eventStream) || seen !== "");
}

/**
 * Tells EventSource in its own words what passes, and when to come again. The page hears it as an event, and the connection
 * is made anew by itself; what does not pass keeps its status, which ends it.
 */
export function sendComeAgain(reply: FastifyReply, error: TapedeckError, seconds: number): FastifyReply {
  const text = `retry: ${seconds * 1_000}\n${errorEvent(error)}`;
  return reply.code(200).headers({ "content-type": eventStream, "cache-control": "no-cache" }).send(text);
}

export function errorLine(error: TapedeckError): string {
  return `${JSON.stringify({ type: "error", error: toErrorBody(error) })}\n`;
}

export function errorEvent(error: TapedeckError): string {
  return `event: error\ndata: ${errorLine(error)}\n`;
}
