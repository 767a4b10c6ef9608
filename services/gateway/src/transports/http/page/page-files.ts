import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installation } from "@tapedeck/shared/installation";
import { ownValue } from "@tapedeck/shared/own-value";

export type PageFile = {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
};

/** The page as it was built: index.html for every view, and the assets that it loads, by name. */
export type PageFiles = {
  readonly index: PageFile;
  /** The page of a session in a file, without the session: `tapedeck export --html` puts it in. */
  readonly sessionFile: PageFile | undefined;
  readonly assets: ReadonlyMap<string, PageFile>;
};

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Where `npm run build` of the page's package writes, or in a package beside the program. */
export function builtPage(): string {
  if (installation !== "checkout") return fileURLToPath(new URL("./page", import.meta.url));
  return join(dirname(fileURLToPath(import.meta.resolve("@tapedeck/web/package.json"))), "dist");
}

/** Reads a built page whole: it is small, and changes only with a new version. Undefined: it was not built. */
export function readPage(folder: string): PageFiles | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const assets = join(folder, "assets");
  const sessionFile = join(folder, "session-file.html");
  const names = existsSync(assets)
    ? readdirSync(assets).filter((name) => ownValue(types, extname(name)) !== undefined)
    : [];
  return {
    index: readFile(join(folder, "index.html")),
    sessionFile: existsSync(sessionFile) ? readFile(sessionFile) : undefined,
    assets: new Map(names.map((name) => [name, readFile(join(assets, name))])),
  };
}

function readFile(path: string): PageFile {
  const bytes = readFileSync(path);
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  return { bytes, type: ownValue(types, extname(path)) ?? "application/octet-stream", etag };
}
