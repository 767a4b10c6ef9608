import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { DocsFile, DocsFiles } from "./docs-files.ts";

const notBuilt =
  "Tapedeck's manual was not built: run `npm run docs:build` in the checkout, and start the gateway again. Its pages are in the folder docs/.\n";

const open = { config: { access: "everyone" } } as const;

/** Serves the manual at /docs. It says nothing about the record, so it is open to everyone. */
export function docsRoutes(app: FastifyInstance, docs: DocsFiles | undefined): void {
  app.route({
    method: ["GET", "HEAD"],
    url: "/docs",
    ...open,
    handler: (_, reply) => (docs === undefined ? refuse(reply, notBuilt) : reply.redirect("/docs/", 308)),
  });
  app.route<{ Params: { "*": string } }>({
    method: ["GET", "HEAD"],
    url: "/docs/*",
    ...open,
    handler: (request, reply) => {
      if (docs === undefined) return refuse(reply, notBuilt);
      const path = request.params["*"];
      const file = docs(path);
      if (file === undefined) return refuse(reply, "The manual has no such page: it begins at /docs/.\n");
      // The name of an asset contains a hash of its content.
      return sendFile(
        request,
        reply,
        file,
        path.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
      );
    },
  });
}

function refuse(reply: FastifyReply, text: string): FastifyReply {
  return reply.code(404).type("text/plain; charset=utf-8").send(text);
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: DocsFile, caching: string): FastifyReply {
  reply.headers({ "cache-control": caching, etag: file.etag, "x-content-type-options": "nosniff" });
  const known = (request.headers["if-none-match"] ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(file.etag)) return reply.code(304).send();
  if (file.type.startsWith("text/html")) reply.header("content-security-policy", policyOf(file.bytes.toString()));
  return reply.type(file.type).send(file.bytes);
}

/** A page runs scripts of this gateway, and those that stand in the page itself, by their hashes. Highlighted code has styles. */
function policyOf(html: string): string {
  const hashes = Array.from(
    html.matchAll(/<script(?![^>]*\bsrc=)[^>]*>(.*?)<\/script>/gs),
    ([, script = ""]) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`,
  );
  return [
    "default-src 'none'",
    ["script-src 'self'", ...hashes].join(" "),
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
