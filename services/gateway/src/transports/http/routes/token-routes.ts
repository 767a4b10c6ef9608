import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Authenticator } from "../../../auth/authenticator.ts";
import { bearerOf } from "../../../auth/bearer.ts";
import type { TokenApi } from "../../../auth/token-api.ts";
import type { CallWatch } from "../../../metrics.ts";
import type { HttpCaller } from "../call-context.ts";
import { ownError, sendError } from "../error-answers.ts";
import { bodyOf } from "../json-body.ts";

export type TokenRoutes = { readonly authenticate: Authenticator; readonly watch: CallWatch };

/**
 * Tokens under /api/v1/tokens, for admins: POST makes one, GET lists them, DELETE /api/v1/tokens/<id> revokes one. For the
 * holder of a token, whatever its roles: POST /api/v1/tokens/renew.
 */
export function tokenRoutes(app: FastifyInstance, api: TokenApi, caller: HttpCaller, options: TokenRoutes): void {
  const { authenticate, watch } = options;
  const forAdmins = { config: { access: "admin" } } as const;
  const answering =
    (status: number, answer: (request: FastifyRequest) => Promise<object>) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      try {
        const body = await answer(request);
        return reply.code(status).send(body);
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
  app.post(
    "/api/v1/tokens/renew",
    { config: { access: "everyone" } },
    answering(201, async ({ headers: { authorization }, ip: peer }) => {
      // The header alone: neither the page's cookie nor a subprotocol renews anything.
      const credentials = { authorization, peer };
      const holder = await authenticate(credentials);
      return api.renew(bearerOf(credentials), holder);
    }),
  );
  app.delete<{ Params: { id: string } }>("/api/v1/tokens/:id", forAdmins, (request, reply) =>
    answering(200, () => api.revoke(request.params.id, caller(request)))(request, reply),
  );
}
