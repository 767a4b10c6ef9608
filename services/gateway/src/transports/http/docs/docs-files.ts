import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { installation } from "@tapedeck/shared/installation";
import { ownValue } from "@tapedeck/shared/own-value";

export type DocsFile = { readonly bytes: Buffer; readonly type: string; readonly etag: string };

/** The manual as `npm run docs:build` made it. Undefined: it has no such file. */
export type DocsFiles = (path: string) => DocsFile | undefined;

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
};

/** Where `npm run docs:build` writes, or in a package beside the program. */
export function builtDocs(): string {
  const folder = installation === "checkout" ? "../../../../../../infra/docs-site/dist" : "./docs";
  return fileURLToPath(new URL(folder, import.meta.url));
}

/** Files are read when somebody asks: they are megabytes that few read. Undefined: the manual was not built. */
export function readDocs(folder: string): DocsFiles | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ownValue(types, extname(entry.name)) !== undefined)
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"));
  const known = new Set(names);
  return (path) => {
    // A folder is its first page.
    const name = path === "" || path.endsWith("/") ? `${path}index.html` : path;
    return known.has(name) ? readFile(join(folder, name)) : undefined;
  };
}

function readFile(path: string): DocsFile {
  const bytes = readFileSync(path);
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  return { bytes, type: ownValue(types, extname(path)) ?? "application/octet-stream", etag };
}
