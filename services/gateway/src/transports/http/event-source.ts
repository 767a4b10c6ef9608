import { type TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { FastifyReply, FastifyRequest } from "fastify";
import { eventStream, ndjson, routes } from "./routes/openapi-routes.ts";

/**
 * Whether a request comes from EventSource, which gives up for good on any status but 200 and hides the reason from its
 * page. It is recognized by `accept` and, when it reconnects, by `last-event-id`.
 */
export function isEventSource({ url, headers }: FastifyRequest): boolean {
  if (url.split("?")[0] !== routes.stream.path) return false;
  const { accept = "", "last-event-id": lastId = "" } = headers;
  return !accept.includes(ndjson) && (accept.includes(eventStream) || lastId !== "");
}

/**
 * Answers EventSource with a temporary error as an event, and with the time to reconnect after. The page receives the event,
 * and EventSource reconnects by itself. A permanent error keeps its status, which ends it.
 */
export function sendRetryLater(reply: FastifyReply, error: TapedeckError, seconds: number): FastifyReply {
  const text = `retry: ${seconds * 1_000}\n${errorEvent(error)}`;
  return reply.code(200).headers({ "content-type": eventStream }).send(text);
}

export function errorLine(error: TapedeckError): string {
  return `${JSON.stringify({ type: "error", error: toErrorBody(error) })}\n`;
}

/** EventSource reconnects behind what is gone for good. What can't be read now it asks for again. */
export function errorEvent(error: TapedeckError): string {
  const { earliest, loss } = error.details;
  const isGone = loss === "lost" || loss === "dropped";
  const id = isGone && earliest !== undefined ? `id: ${earliest}\n` : "";
  return `${id}event: error\ndata: ${errorLine(error)}\n`;
}
