import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { FastifyRequest } from "fastify";
import type { Authenticator } from "../../auth/authenticator.ts";
import { requireRole } from "../../auth/roles.ts";
import type { Caller, Role } from "../../call-context.ts";
import type { PresentedLogin } from "./sign-in-cookie.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The role that a route needs; default: viewer. `everyone` is for routes that reveal nothing of the record. */
    readonly access?: Role | "everyone";
    /** It reads the query itself, and refuses what it does not know. A route of the API that does not say so takes no parameter. */
    readonly readsQuery?: true;
  }
}

const callers = new WeakMap<FastifyRequest, Caller>();

/** The caller of an authenticated request; not for routes that are open to everyone. */
export function callerOf(request: FastifyRequest): Caller {
  const caller = callers.get(request);
  if (caller === undefined) throw new Error(`${request.method} ${request.url} got past the authentication`);
  return caller;
}

export type Authentication = {
  readonly authenticate: Authenticator;
  /** The request comes from a page that is not our own. */
  readonly isOfOtherPage: boolean;
  /** The header, or what the cookie of the page stands for. */
  readonly login: PresentedLogin;
};

/**
 * Authenticates a request before it reaches a route; for a WebSocket, before the upgrade.
 * @throws TapedeckError unauthenticated, forbidden, not_ready
 */
export async function authenticateRequest(
  request: FastifyRequest,
  { authenticate, isOfOtherPage, login }: Authentication,
): Promise<void> {
  const { access = "viewer" } = request.routeOptions.config;
  if (access === "everyone") return;
  const { "sec-websocket-protocol": offered = "" } = request.headers;
  const protocols = offered.split(",").map((name) => name.trim());
  const caller = await authenticate({ ...login, protocols, peer: request.ip });
  requireRole(access, caller);
  if (isOfOtherPage) requireReading(request, access, caller);
  callers.set(request, caller);
}

const readingMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Without authentication, a browser would act as an admin for any page. Pages in gateway.origins may read. */
function requireReading({ method }: FastifyRequest, access: Role, { roles }: Caller): void {
  if (roles !== undefined || (access === "viewer" && readingMethods.has(method))) return;
  throw new TapedeckError(
    "forbidden",
    "without authentication (auth: none) pages of other origins may only read: everything else is for programs and this Tapedeck's own page",
  );
}
