import type { IncomingHttpHeaders } from "node:http";
import type { FastifyServerOptions } from "fastify";

/** The name of the constraint of routes that are for browsers' documents alone: `constraints: { [wantsHtml]: true }`. */
export const wantsHtml = "wantsHtml";

export function acceptsHtml({ accept = "" }: IncomingHttpHeaders): boolean {
  return accept.includes("text/html");
}

type Strategies = NonNullable<FastifyServerOptions["constraints"]>;

/** Lets a route match only requests for HTML, so that others find what they would find without it. */
export const htmlConstraint: Strategies[string] = {
  name: wantsHtml,
  storage: () => new Map(),
  validate() {},
  deriveConstraint: ({ headers }: { readonly headers: IncomingHttpHeaders }) => acceptsHtml(headers),
};
