import { httpStatusOf, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { FastifyReply } from "fastify";
import type { CallWatch } from "../../metrics.ts";

/** Counts an error of our own API, and gives what the client may know. An upstream's error can't occur there. */
export function ownError(watch: CallWatch, error: unknown): TapedeckError {
  const known = watch.failed(error);
  return known instanceof TapedeckError ? known : new TapedeckError("internal", "internal error");
}

/** Answers with an error of our own API. */
export function sendError(reply: FastifyReply, error: TapedeckError, status = httpStatusOf(error.code)): FastifyReply {
  if (error.retryAfter !== undefined) reply.header("retry-after", error.retryAfter);
  return reply.code(status).send({ error: toErrorBody(error) });
}
