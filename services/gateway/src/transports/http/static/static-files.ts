import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { ownValue } from "@tapedeck/shared/own-value";
import type { FastifyReply, FastifyRequest } from "fastify";

export type StaticFile = {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
  readonly caching: string;
  /** The content security policy of a document. */
  readonly policy?: string | undefined;
};

/** By their path in the folder, with slashes. */
export type StaticFiles = ReadonlyMap<string, StaticFile>;

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
};

/**
 * Reads all files of a built site that browsers know, because they change only with a new version.
 * `policyOf`: the content security policy of a document. Undefined: the site was not built.
 */
export function readStaticFiles(folder: string, policyOf: (html: string) => string): StaticFiles | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"));
  const files = new Map<string, StaticFile>();
  for (const path of paths) {
    const type = ownValue(types, extname(path));
    if (type === undefined) continue;
    const bytes = readFileSync(join(folder, path));
    files.set(path, {
      bytes,
      type,
      etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
      // The name of an asset contains a hash of its content.
      caching: path.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
      policy: path.endsWith(".html") ? policyOf(bytes.toString()) : undefined,
    });
  }
  return files;
}

/** A document runs what this gateway serves, and talks to this gateway alone. Nobody may frame it. */
export function documentPolicy({ scripts = "", styles = "" } = {}): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${scripts}`.trimEnd(),
    `style-src 'self' ${styles}`.trimEnd(),
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

export function sendFile(request: FastifyRequest, reply: FastifyReply, file: StaticFile): FastifyReply {
  reply.headers({
    "cache-control": file.caching,
    etag: file.etag,
    // A gateway without TLS learns of some browsers only by this header that a request is from its own page.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
  });
  if (file.policy !== undefined) reply.header("content-security-policy", file.policy);
  const known = (request.headers["if-none-match"] ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(file.etag)) return reply.code(304).send();
  return reply.type(file.type).send(file.bytes);
}
