import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { installation } from "@tapedeck/shared/installation";
import type { FastifyInstance, FastifyReply } from "fastify";
import { documentPolicy, readStaticFiles, sendFile } from "./static-files.ts";

const notBuilt =
  "Tapedeck's manual was not built: run `npm run docs:build` in the checkout, and start the gateway again. Its pages are in the folder docs/.\n";

const open = { config: { access: "everyone" } } as const;

/**
 * Serves the manual at /docs. It says nothing about the record, so it is open to everyone.
 * @returns the path of its first page; undefined if the manual was not built
 */
export function docsRoutes(app: FastifyInstance, folder: string = builtDocs()): string | undefined {
  const docs = readStaticFiles(folder, policyOf);
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
      // A folder is its first page.
      const file = docs.get(request.params["*"].replace(/(^|\/)$/, "$1index.html"));
      if (file === undefined) return refuse(reply, "The manual has no such page: it begins at /docs/.\n");
      return sendFile(request, reply, file);
    },
  });
  return docs === undefined ? undefined : "/docs/";
}

/** Where `npm run docs:build` writes, or in a package beside the program. */
function builtDocs(): string {
  const folder = installation === "checkout" ? "../../../../../../infra/docs-site/dist" : "./docs";
  return fileURLToPath(new URL(folder, import.meta.url));
}

function refuse(reply: FastifyReply, text: string): FastifyReply {
  return reply.code(404).type("text/plain; charset=utf-8").send(text);
}

/** Pages have scripts of their own, which run by their hashes. Highlighted code has styles. */
function policyOf(html: string): string {
  const hashes = Array.from(
    html.matchAll(/<script(?![^>]*\bsrc=)[^>]*>(.*?)<\/script>/gs),
    ([, script = ""]) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`,
  );
  return documentPolicy({ scripts: hashes.join(" "), styles: "'unsafe-inline'" });
}
