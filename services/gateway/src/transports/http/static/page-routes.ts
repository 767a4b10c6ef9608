import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installation } from "@tapedeck/shared/installation";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { notFound, sendSkaffold } from "../skaffold-errors.ts";
import { documentPolicy, readStaticFiles, type StaticFile, type StaticFiles, sendFile } from "./static-files.ts";

/** The views of the page. Each URL answers with the same document, which shows the view that the URL names. */
const viewPaths = ["/", "/sessions/*", "/loops", "/loops/*", "/sources/*", "/compare", "/trends", "/health"] as const;

const notBuilt =
  "Tapedeck's page was not built: run `npm start`, or `npm run build -w packages/web` in the checkout, and start the gateway again. The API is described at /api/docs.\n";

const open = { config: { access: "everyone" } } as const;

/**
 * Serves the page. It reveals nothing of the record, so it is open to everyone: what it shows it reads from the API as the
 * visitor. A client that does not ask for HTML gets Skaffold's 404, as Skaffold has nothing at these paths.
 */
export function pageRoutes(app: FastifyInstance, folder: string = builtPage()): void {
  const page = readStaticFiles(folder, () => documentPolicy());
  for (const url of viewPaths) {
    app.route({ method: ["GET", "HEAD"], url, ...open, handler: (request, reply) => sendView(request, reply, page) });
  }
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

function sendView(request: FastifyRequest, reply: FastifyReply, page: StaticFiles | undefined): FastifyReply {
  reply.header("vary", "accept");
  const wantsHtml = (request.headers.accept ?? "").includes("text/html");
  if (wantsHtml && page === undefined) return reply.type("text/plain; charset=utf-8").send(notBuilt);
  return sendFound(request, reply, wantsHtml ? page?.get("index.html") : undefined);
}

function sendFound(request: FastifyRequest, reply: FastifyReply, file: StaticFile | undefined): FastifyReply {
  return file === undefined ? sendSkaffold(reply, notFound.status, notFound.body) : sendFile(request, reply, file);
}
