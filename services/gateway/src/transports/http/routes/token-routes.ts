import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { TokenApi } from "../../../auth/token-api.ts";
import type { CallWatch } from "../../../metrics.ts";
import type { HttpCaller } from "../call-context.ts";
import { ownError, sendError } from "../error-answers.ts";

/** Tokens under /api/v1/tokens, for admins: POST makes one, GET lists them, DELETE /api/v1/tokens/<id> revokes one. */
export function tokenRoutes(app: FastifyInstance, api: TokenApi, caller: HttpCaller, watch: CallWatch): void {
  const forAdmins = { config: { access: "admin" } } as const;
  const answering =
    (status: number, answer: (request: FastifyRequest) => Promise<object>) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      try {
        const body = await answer(request);
        // The answer may hold a token.
        return reply.code(status).header("cache-control", "no-store").send(body);
      } catch (error) {
        return sendError(reply, ownError(watch, error));
      }
    };

  app.post(
    "/api/v1/tokens",
    forAdmins,
    answering(201, (request) => api.create(bodyOf(request), caller(request))),
  );
  app.get(
    "/api/v1/tokens",
    forAdmins,
    answering(200, (request) => api.list(caller(request))),
  );
  app.delete<{ Params: { id: string } }>("/api/v1/tokens/:id", forAdmins, (request, reply) =>
    answering(200, () => api.revoke(request.params.id, caller(request)))(request, reply),
  );
}

function bodyOf({ body }: FastifyRequest): unknown {
  try {
    return JSON.parse(typeof body === "string" ? body : "");
  } catch {
    throw invalidArgument("the body is not JSON");
  }
}
