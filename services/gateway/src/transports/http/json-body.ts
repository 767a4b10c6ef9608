import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { FastifyRequest } from "fastify";

/** @throws TapedeckError invalid_argument */
export function bodyOf({ body }: FastifyRequest): unknown {
  try {
    return JSON.parse(typeof body === "string" ? body : "");
  } catch {
    throw invalidArgument("the body is not JSON");
  }
}
