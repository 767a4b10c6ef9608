import { httpStatusOf, TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Authenticator } from "../../../auth/authenticator.ts";
import { onlyDeveloper } from "../../../privacy/own-developer.ts";
import type { Privacy } from "../../../privacy/settings.ts";
import type { PresentedLogin } from "../sign-in-cookie.ts";

export type ServerInfo = {
  readonly version: string;
  /** The port for gRPC on the same host. */
  readonly grpcPort: number;
  /** Whether callers need a token. */
  readonly auth: "none" | "tokens";
  /** What people who share a workspace see of each other. */
  readonly privacy: Privacy;
  /** By this machine's clock, RFC 3339. */
  readonly time: string;
  /** Where a browser begins to sign in by an identity provider, and that provider's name; absent without one. */
  readonly signIn?: { readonly title: string; readonly url: string };
  /** The path of the manual; absent if it was not built. */
  readonly docs?: string;
  /** The rights of the request's token; absent without one. */
  readonly token?: {
    readonly name: string;
    readonly workspace: string;
    readonly roles: readonly string[];
    readonly developer?: string;
    /** Other developers are hidden from it: it sees its own recordings, and sums of the team. */
    readonly seesOnlyOwn?: true;
  };
};

export type AboutOptions = {
  readonly version: string;
  /** "host:port" */
  readonly grpc: string;
  readonly auth: ServerInfo["auth"];
  readonly privacy: Privacy;
  readonly signIn: ServerInfo["signIn"];
  readonly docs: string | undefined;
  readonly authenticate: Authenticator;
  /** The header `authorization`, or what the cookie of the page stands for. */
  readonly loginOf: (request: FastifyRequest) => PresentedLogin;
};

/**
 * GET /about: what a program has to know about a Tapedeck before it can call it. Open to everyone, because it reveals nothing
 * of the record. A request with a token gets the token's rights, or 401.
 */
export function aboutRoute(app: FastifyInstance, options: AboutOptions): void {
  const { version, grpc, auth, privacy, signIn, docs, authenticate } = options;
  app.get("/about", { config: { access: "everyone" } }, async (request, reply) => {
    const login = options.loginOf(request);
    const grpcPort = Number(grpc.slice(grpc.lastIndexOf(":") + 1));
    const time = new Date().toISOString();
    const about: ServerInfo = {
      version,
      grpcPort,
      auth,
      privacy,
      time,
      ...(signIn && { signIn }),
      ...(docs && { docs }),
    };
    const isNobody = login.authorization === undefined && login.session === undefined;
    if (auth === "none" || isNobody) return about;
    try {
      const caller = await authenticate({ ...login, peer: request.ip });
      const { who, workspace, roles = [], developer } = caller;
      const token: ServerInfo["token"] = {
        name: who,
        workspace,
        roles: [...roles],
        ...(developer && { developer }),
        ...(onlyDeveloper(privacy.developers, caller) !== undefined && { seesOnlyOwn: true }),
      };
      return { ...about, token };
    } catch (error) {
      if (!(error instanceof TapedeckError)) throw error;
      return reply.code(httpStatusOf(error.code)).send({ error: toErrorBody(error) });
    }
  });
}
