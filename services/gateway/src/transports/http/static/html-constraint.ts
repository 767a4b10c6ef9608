import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance } from "fastify";

/** The name of the constraint of routes that are for browsers' documents alone: `constraints: { [wantsHtml]: true }`. */
export const wantsHtml = "wantsHtml";

export function acceptsHtml({ accept = "" }: IncomingHttpHeaders): boolean {
  return accept.includes("text/html");
}

/** Lets a route match only requests for HTML, so that others find what they would find without it. */
export const htmlConstraint: Parameters<FastifyInstance["addConstraintStrategy"]>[0] = {
  name: wantsHtml,
  storage: () => new Map(),
  validate() {},
  deriveConstraint: ({ headers }: { readonly headers: IncomingHttpHeaders }) => acceptsHtml(headers),
};
