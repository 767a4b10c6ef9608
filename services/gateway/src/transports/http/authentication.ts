import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { FastifyRequest } from "fastify";
import type { Authenticator } from "../../auth/authenticator.ts";
import { requireRole } from "../../auth/roles.ts";
import type { Caller, Role } from "../../call-context.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Who may ask a route: by default viewers. `everyone` is for what tells nothing of what was recorded. */
    readonly access?: Role | "everyone";
  }
}

const callers = new WeakMap<FastifyRequest, Caller>();

/** Who makes a request that was let in; not on routes that are open to everyone. */
export function callerOf(request: FastifyRequest): Caller {
  const caller = callers.get(request);
  if (caller === undefined) throw new Error(`${request.method} ${request.url} got past the authentication`);
  return caller;
}

export type Letting = {
  readonly authenticate: Authenticator;
  /** A page that is not our own has sent the request. */
  readonly isOfOtherPage: boolean;
};

/**
 * Lets a request in, to be done before any route knows of it; a WebSocket's before it is one.
 * @throws TapedeckError unauthenticated, forbidden, not_ready
 */
export async function letIn(request: FastifyRequest, { authenticate, isOfOtherPage }: Letting): Promise<void> {
  const { access = "viewer" } = request.routeOptions.config;
  if (access === "everyone") return;
  const { authorization, "sec-websocket-protocol": offered = "" } = request.headers;
  const protocols = offered.split(",").map((name) => name.trim());
  const caller = await authenticate({ authorization, protocols, peer: request.ip });
  requireRole(access, caller);
  if (isOfOtherPage) requireReading(request, access, caller);
  callers.set(request, caller);
}

const readingMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Without authentication a browser sends for any page what an admin may send. Those in gateway.origins may read. */
function requireReading({ method }: FastifyRequest, access: Role, { roles }: Caller): void {
  if (roles !== undefined || (access === "viewer" && readingMethods.has(method))) return;
  throw new TapedeckError(
    "forbidden",
    "without authentication (auth: none) pages of other origins only read: all else is for programs and this Tapedeck's own page",
  );
}
