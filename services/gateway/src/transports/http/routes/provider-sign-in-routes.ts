import { httpStatusOf } from "@tapedeck/shared/errors/errors";
import { ownValue } from "@tapedeck/shared/own-value";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { callbackPath, type PageSignIn, signInTimeoutMs } from "../../../auth/provider/page-sign-in.ts";
import type { PageSignInSettings } from "../../../auth/provider/settings.ts";
import type { CallWatch } from "../../../metrics.ts";
import { ownError } from "../error-answers.ts";
import { cookieOf, signInCookie } from "../sign-in-cookie.ts";

export const beginPath = "/api/v1/sign-in/provider";

const startedCookieName = "tapedeck-begun-sign-in";

export type ProviderSignInRouteOptions = {
  readonly signIn: PageSignIn;
  readonly page: PageSignInSettings;
  readonly watch: CallWatch;
};

/**
 * GET /api/v1/sign-in/provider?to=<path> sends the browser to the identity provider, which sends it back to GET
 * /api/v1/sign-in/callback. That sets the cookie with which the page reads, and leads to the path. Both are open to
 * everyone, and answer people: with redirects within this origin or to the provider, or with a page that explains the
 * error.
 */
export function providerSignInRoutes(app: FastifyInstance, { signIn, page, watch }: ProviderSignInRouteOptions): void {
  const open = { config: { access: "everyone", readsQuery: true } } as const;
  const isSecure = page.origin.startsWith("https:");

  app.get<{ Querystring: { to?: unknown } }>(beginPath, open, async (request, reply) => {
    if (isOfOtherSite(request)) return redirect(reply, page.origin);
    try {
      const { to = "/" } = request.query;
      const { location, started } = await signIn.begin(typeof to === "string" ? to : "/");
      return redirect(reply.header("set-cookie", startedCookie(started, isSecure)), location.href);
    } catch (error) {
      return sendError(reply, ownError(watch, error));
    }
  });

  app.get(callbackPath, open, async (request, reply) => {
    // The started sign-in is over, however it ends.
    const over = startedCookie("", isSecure);
    try {
      const started = cookieOf(request.headers.cookie ?? "", startedCookieName);
      const { session, to } = await signIn.finish({
        url: request.url,
        peer: request.ip,
        started: started === "" ? undefined : started,
      });
      const cookie = signInCookie(session, { isSecure, ageSeconds: Math.floor(page.sessionMs / 1_000) });
      return redirect(reply.header("set-cookie", [over, cookie]), page.origin + to);
    } catch (error) {
      return sendError(reply.header("set-cookie", over), ownError(watch, error));
    }
  });
}

/** A link on another site begins no sign-in by itself: it leads to the page, where a person may. */
function isOfOtherSite({ headers }: FastifyRequest): boolean {
  const site = headers["sec-fetch-site"];
  return site === "cross-site" || site === "same-site";
}

/** SameSite=Lax: the provider's redirect has to bring it back. It opens nothing but this one sign-in. */
function startedCookie(value: string, isSecure: boolean): string {
  const age = value === "" ? 0 : signInTimeoutMs / 1_000;
  return `${startedCookieName}=${value}; Path=${callbackPath}; Max-Age=${age}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
}

/** Addresses here have codes and states, which go into no Referer and no cache. */
const discreet = { "cache-control": "no-store", "referrer-policy": "no-referrer" } as const;

function redirect(reply: FastifyReply, location: string): FastifyReply {
  return reply.headers(discreet).redirect(location, 303);
}

type SignInError = { readonly code: Parameters<typeof httpStatusOf>[0]; readonly message: string };

function sendError(reply: FastifyReply, { code, message }: SignInError): FastifyReply {
  return reply
    .code(httpStatusOf(code))
    .headers({
      ...discreet,
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
    })
    .type("text/html; charset=utf-8")
    .send(
      `<!doctype html><html lang="en"><title>Not signed in · Tapedeck</title><h1>You are not signed in</h1><p>${escaped(message)}.</p><p><a href="/">Back to Tapedeck</a></p></html>\n`,
    );
}

function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (character) => ownValue(entities, character) ?? "");
}
