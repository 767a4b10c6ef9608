import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Authenticator } from "../../../auth/authenticator.ts";
import { requireRole } from "../../../auth/roles.ts";
import type { TokenSeal } from "../../../auth/sealed-token.ts";
import type { CallWatch } from "../../../metrics.ts";
import { ownError, sendError } from "../error-answers.ts";
import { isOfOtherPage } from "../host-origin.ts";
import { signInCookie } from "../sign-in-cookie.ts";

export type SignInOptions = {
  readonly needsToken: boolean;
  readonly authenticate: Authenticator;
  readonly seal: TokenSeal;
  readonly isTls: boolean;
  readonly watch: CallWatch;
};

const signInRequest = z.strictObject({ token: z.string().min(1).max(1_000) });

/**
 * POST /api/v1/sign-in takes `{"token"}` and sets the cookie with which the page reads; POST /api/v1/sign-out takes the
 * cookie away. Only this gateway's own page may do either: a page that signs visitors in would choose what they see.
 */
export function signInRoutes(app: FastifyInstance, options: SignInOptions): void {
  const { needsToken, authenticate, seal, isTls, watch } = options;
  const open = { config: { access: "everyone" } } as const;
  const answering =
    (value: (request: FastifyRequest) => Promise<string>) => async (request: FastifyRequest, reply: FastifyReply) => {
      try {
        if (isOfOtherPage(request.headers, isTls)) {
          throw new TapedeckError("forbidden", "only Tapedeck's own page may sign in and out");
        }
        const cookie = signInCookie(await value(request), { isSecure: isTls || isOverTls(request) });
        return reply.code(204).header("set-cookie", cookie).send();
      } catch (error) {
        return sendError(reply, ownError(watch, error));
      }
    };

  app.post(
    "/api/v1/sign-in",
    open,
    answering(async (request) => {
      if (!needsToken) throw new TapedeckError("forbidden", "no sign-in is needed here (auth: none)");
      const token = tokenOf(request);
      requireRole("viewer", await authenticate({ authorization: `Bearer ${token}`, peer: request.ip }));
      return seal.seal(token);
    }),
  );
  app.post(
    "/api/v1/sign-out",
    open,
    answering(async () => ""),
  );
}

/** A proxy in front of us may add TLS. */
function isOverTls({ headers }: FastifyRequest): boolean {
  return headers.origin?.startsWith("https:") === true;
}

function tokenOf({ body }: FastifyRequest): string {
  try {
    return signInRequest.parse(JSON.parse(typeof body === "string" ? body : "")).token.trim();
  } catch {
    throw invalidArgument('the body is not {"token": "tdk_…"}', "token");
  }
}
