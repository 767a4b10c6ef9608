import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { type RawParameters, readParameters } from "../../apis/tapedeck/parameters.ts";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { TokenSeal } from "../../auth/sealed-token.ts";
import type { ApiName, CallWatch } from "../../metrics.ts";
import { authenticateRequest } from "./authentication.ts";
import { closedSignal } from "./call-context.ts";
import { corsHeaders, isPreflight, refusedCorsHeaders } from "./cors.ts";
import { type AllowedNames, isOfOtherPage, type NameRefusal, refusalOf } from "./host-origin.ts";
import { apiOf, pathOf } from "./paths.ts";
import { sendForbidden, sendRefusal } from "./refusals.ts";
import { presentedLogin } from "./sign-in-cookie.ts";

export type AdmissionOptions = {
  readonly allowed: AllowedNames;
  readonly authenticate: Authenticator;
  readonly watch: (api: ApiName) => CallWatch;
  readonly isTls: boolean;
  /** Opens the cookie of the page; without it, cookies count for nothing. */
  readonly seal?: TokenSeal | undefined;
};

/** Operators' paths are not API calls, and are not counted as such. */
const operatorPaths: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

const noParameters = z.strictObject({});

/** Checks every request before its route runs: host and origin first, then who calls, and that its parameters are read. */
export function admitRequests(app: FastifyInstance, options: AdmissionOptions): void {
  const { allowed, authenticate, watch, isTls, seal } = options;
  app.addHook("onRequest", async (request, reply) => {
    // A caller's answer is for that caller alone. Routes whose answer is the same for everyone set their own.
    reply.header("cache-control", "no-store");
    const refusal = refusalOf(request.headers, allowed, { isTls });
    if (refusal !== undefined) return refuse(request, reply, refusal);
    const api = apiOf(request);
    if (!operatorPaths.has(pathOf(request))) watch(api).seen(closedSignal(reply));
    reply.headers(corsHeaders(request.headers));
    if (isPreflight(request)) return reply.code(204).send();
    try {
      await authenticateRequest(request, {
        authenticate,
        isOfOtherPage: isOfOtherPage(request.headers, isTls),
        login: presentedLogin(request, seal, isTls),
      });
      const { readsQuery = false } = request.routeOptions.config;
      if (pathOf(request).startsWith("/api/v1/") && !request.is404 && !readsQuery)
        readParameters(noParameters, request.query as RawParameters);
    } catch (error) {
      return sendRefusal(request, reply, watch(api).failed(error));
    }
  });
}

async function refuse(request: FastifyRequest, reply: FastifyReply, { message, ofOrigin }: NameRefusal): Promise<void> {
  if (ofOrigin) {
    reply.headers(refusedCorsHeaders(request.headers));
    if (isPreflight(request)) return void (await reply.code(204).send());
  }
  await sendForbidden(request, reply, message);
}
