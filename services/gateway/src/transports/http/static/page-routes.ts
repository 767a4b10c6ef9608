import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installation } from "@tapedeck/shared/installation";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isOurs, pathOf } from "../paths.ts";
import { notFound, sendSkaffold } from "../skaffold-errors.ts";
import { acceptsHtml, htmlConstraint, wantsHtml } from "./html-constraint.ts";
import { documentPolicy, readStaticFiles, type StaticFile, type StaticFiles, sendFile } from "./static-files.ts";

/** The views of the page. Each URL answers with the same document, which shows the view that the URL names. */
const viewPaths = [
  ...["/sessions/*", "/loops", "/loops/*", "/sources/*"],
  ...["/compare", "/compare/", "/trends", "/trends/", "/health", "/health/"],
];

const notBuilt =
  "Tapedeck's page was not built: run `npm start`, or `npm run build -w packages/web` in the checkout, and start the gateway again. The API is described at /api/docs.\n";

const open = { config: { access: "everyone" } } as const;

/**
 * Serves the page. It reveals nothing of the record, so it is open to everyone: what it shows it reads from the API as the
 * visitor. A client that does not ask for HTML gets Skaffold's 404, as Skaffold has nothing at these paths; only "/" is
 * there for every client, because load balancers and link checkers ask for it.
 */
export function pageRoutes(app: FastifyInstance, folder: string = builtPage()): void {
  const page = readStaticFiles(folder, () => documentPolicy());
  app.addConstraintStrategy(htmlConstraint);
  const method = ["GET", "HEAD"];
  app.route({ method, url: "/", ...open, handler: (request, reply) => sendDocument(request, reply, page) });
  for (const url of viewPaths) {
    app.route({ method, url, ...open, handler: (request, reply) => sendView(request, reply, page) });
  }
  // A path that nothing else has: the page says so, and where the visitor may have meant to go. Other clients get what
  // the not-found handler answers, after they are authenticated.
  app.route({
    method,
    url: "/*",
    ...open,
    constraints: { [wantsHtml]: true },
    handler: (request, reply) => sendUnknown(request, reply, page),
  });
  // `tapedeck export --html` puts a session into this page. It is for files, and runs nothing here.
  const sessionFile = page?.get("session-file.html");
  app.route({
    method: ["GET", "HEAD"],
    url: "/session-file.html",
    ...open,
    handler: (request, reply) =>
      sendFound(request, reply, sessionFile && { ...sessionFile, policy: "default-src 'none'; sandbox" }),
  });
  app.route<{ Params: { name: string } }>({
    method: ["GET", "HEAD"],
    url: "/assets/:name",
    ...open,
    handler: (request, reply) => sendFound(request, reply, page?.get(`assets/${request.params.name}`)),
  });
}

/** Where `npm run build` of the page's package writes, or in a package beside the program. */
function builtPage(): string {
  if (installation !== "checkout") return fileURLToPath(new URL("./page", import.meta.url));
  return join(dirname(fileURLToPath(import.meta.resolve("@tapedeck/web/package.json"))), "dist");
}

function sendDocument(request: FastifyRequest, reply: FastifyReply, page: StaticFiles | undefined): FastifyReply {
  if (page === undefined) return reply.type("text/plain; charset=utf-8").send(notBuilt);
  return sendFound(request, reply, page.get("index.html"));
}

function sendView(request: FastifyRequest, reply: FastifyReply, page: StaticFiles | undefined): FastifyReply {
  reply.header("vary", "accept");
  return acceptsHtml(request.headers) ? sendDocument(request, reply, page) : sendFound(request, reply, undefined);
}

function sendUnknown(request: FastifyRequest, reply: FastifyReply, page: StaticFiles | undefined) {
  if (isOurs(pathOf(request))) return reply.callNotFound();
  return sendView(request, reply.code(404), page);
}

function sendFound(request: FastifyRequest, reply: FastifyReply, file: StaticFile | undefined): FastifyReply {
  return file === undefined ? sendSkaffold(reply, notFound.status, notFound.body) : sendFile(request, reply, file);
}
