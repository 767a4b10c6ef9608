import type { ServerResponse } from "node:http";
import { callOver } from "@tapedeck/shared/sync/call-over";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { WebSocket } from "ws";
import {
  type AnswerHead,
  type CallContext,
  type Caller,
  contextNames,
  headEntries,
  sourceOfHeader,
  whileAuthorized,
} from "../../call-context.ts";

export type HttpCaller = (request: FastifyRequest) => Caller;

const parameters = {
  source: "source",
  session: "session",
  at: "at",
  after: "after",
  minPosition: "min_position",
} as const satisfies Record<keyof typeof contextNames, string>;

/** The context of a call, from query parameters or from headers with the names of gRPC's metadata. */
export function contextOf(request: FastifyRequest, caller: Caller, signal: AbortSignal): CallContext {
  const query = request.query as Record<string, string | string[] | undefined>;
  const fields = Object.entries(contextNames).flatMap(([field, name]) => {
    const parameter = query[parameters[field as keyof typeof parameters]];
    const header = request.headers[name];
    const headerValue = field === "source" && typeof header === "string" ? sourceOfHeader(header) : header;
    const found = (Array.isArray(parameter) ? parameter.at(-1) : parameter) ?? headerValue;
    if (typeof found !== "string" || found === "") return [];
    // In a URL the "+" of a time's zone arrives as a space.
    return [[field, field === "at" ? found.replace(" ", "+") : found] as const];
  });
  return { ...caller, signal: whileAuthorized(signal, caller), ...Object.fromEntries(fields) };
}

export function setHead(reply: FastifyReply, head: AnswerHead): FastifyReply {
  return reply.headers(Object.fromEntries(headEntries(head)));
}

type OpenCall = { readonly response: ServerResponse; readonly close: () => void };

const openCalls = new WeakMap<FastifyRequest, OpenCall>();

/** Aborts when the client is gone or the answer is complete. */
export function closedSignal(reply: FastifyReply): AbortSignal {
  const closed = new AbortController();
  const close = () => closed.abort(callOver);
  reply.raw.once("close", close);
  if (reply.raw.destroyed) close();
  openCalls.set(reply.request, { response: reply.raw, close });
  return closed.signal;
}

/**
 * The connection of a request has become a WebSocket: the call ends with it. Lets go of the request, its headers and its
 * response, which the connection would hold for as long as it is open.
 */
export function releaseRequest(request: FastifyRequest, socket: WebSocket): void {
  const call = openCalls.get(request);
  const tcp = request.raw.socket;
  if (call !== undefined) {
    call.response.detachSocket(tcp);
    tcp.once("close", call.close);
    if (tcp.destroyed) call.close();
  }
  // The plugin's listener has the request for its log.
  socket.removeAllListeners("error").on("error", () => socket.terminate());
}
