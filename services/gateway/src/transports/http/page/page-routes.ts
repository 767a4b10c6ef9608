import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { notFound, sendSkaffold } from "../skaffold-errors.ts";
import type { PageFile, PageFiles } from "./page-files.ts";

/** The views of the page. Each URL answers with the same document, which shows the view that the URL names. */
const viewPaths = ["/", "/sessions/*", "/loops/*", "/compare", "/trends", "/health"] as const;

/** The page runs what this gateway serves, and talks to this gateway alone. Nobody may frame it. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const notBuilt =
  "Tapedeck's page was not built: run `npm start`, or `npm run build -w packages/web` in the checkout, and start the gateway again. The API is described at /api/docs.\n";

const open = { config: { access: "everyone" } } as const;

/**
 * Serves the page. It reveals nothing of the record, so it is open to everyone: what it shows it reads from the API as the
 * visitor. A client that does not ask for HTML gets Skaffold's 404, as Skaffold has nothing at these paths.
 */
export function pageRoutes(app: FastifyInstance, page: PageFiles | undefined): void {
  for (const url of viewPaths) {
    app.route({ method: ["GET", "HEAD"], url, ...open, handler: (request, reply) => sendView(request, reply, page) });
  }
  app.route({
    method: ["GET", "HEAD"],
    url: "/session-file.html",
    ...open,
    handler: (request, reply) => {
      const file = page?.sessionFile;
      if (file === undefined) return sendSkaffold(reply, notFound.status, notFound.body);
      // It is for files, and runs nothing here.
      reply.header("content-security-policy", "default-src 'none'; sandbox");
      return sendFile(request, reply, file, "no-cache");
    },
  });
  app.route<{ Params: { name: string } }>({
    method: ["GET", "HEAD"],
    url: "/assets/:name",
    ...open,
    handler: (request, reply) => {
      const file = page?.assets.get(request.params.name);
      if (file === undefined) return sendSkaffold(reply, notFound.status, notFound.body);
      // The name contains a hash of the content.
      return sendFile(request, reply, file, "public, max-age=31536000, immutable");
    },
  });
}

function sendView(request: FastifyRequest, reply: FastifyReply, page: PageFiles | undefined): FastifyReply {
  reply.header("vary", "accept");
  if (!(request.headers.accept ?? "").includes("text/html")) {
    return sendSkaffold(reply, notFound.status, notFound.body);
  }
  if (page === undefined) return reply.type("text/plain; charset=utf-8").send(notBuilt);
  reply.headers({
    "content-security-policy": contentSecurityPolicy,
    // A gateway without TLS learns of some browsers only by this header that a request is from its own page.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
  });
  return sendFile(request, reply, page.index, "no-cache");
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: PageFile, caching: string): FastifyReply {
  reply.headers({ "cache-control": caching, etag: file.etag, "x-content-type-options": "nosniff" });
  const known = (request.headers["if-none-match"] ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(file.etag)) return reply.code(304).send();
  return reply.type(file.type).send(file.bytes);
}
