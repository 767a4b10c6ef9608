// Copies the pages of docs/, and the few beside them, to where VitePress builds them. Links to pages stay links; those to
// other files of the repository, which the site does not have, become text. Comments are left out. The site's packages have
// a lock file of their own: as a workspace they would add 102 MB to every `npm ci`.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const pagesFolder = fileURLToPath(new URL("./pages", import.meta.url));
/** What is built, until it is whole. */
export const builtFolder = fileURLToPath(new URL("./node_modules/.built", import.meta.url));

/** Pages outside of docs/, by their path in the site. */
const beside = {
  "CHANGELOG.md": "changelog.md",
  "CONTRIBUTING.md": "contributing.md",
  "packages/client/README.md": "client.md",
  "services/gateway/src/transports/websocket/PROTOCOL.md": "websocket.md",
};

/** The path in the site of a file of the repository. Undefined: the site does not have it. */
export function sitePath(path) {
  if (Object.hasOwn(beside, path)) return beside[path];
  if (!path.startsWith("docs/") || !existsSync(join(root, path))) return undefined;
  return path.slice("docs/".length).replace(/(^|\/)README\.md$/, "$1index.md");
}

/** `page`: its path in the repository. */
export function staged(page, text) {
  const from = posix.dirname(sitePath(page) ?? "");
  const linkTo = (href) => {
    if (/^[a-z]+:|^#/i.test(href)) return href;
    const [target = "", anchor] = href.split("#");
    const path = posix.join(posix.dirname(page), decodeURIComponent(target));
    if (!existsSync(join(root, path))) throw new Error(`${page}: ${href} leads nowhere`);
    const found = sitePath(path.replace(/\/$/, "/README.md"));
    if (found === undefined || !/\.(md|png|svg)$/.test(found)) return undefined;
    const relative = posix.relative(from, found);
    const local = relative.startsWith(".") ? relative : `./${relative}`;
    return anchor === undefined ? local : `${local}#${anchor}`;
  };
  // A definition without its file makes "[run 01]" plain text.
  const definitions = /^\[([^\]]+)\]: (\S+)$/gm;
  const links = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;
  return outsideOfCode(text, (part) =>
    part
      .replace(/<!--.*?-->\n*/gs, "")
      .replace(definitions, (_, name, href) => (linkTo(href) === undefined ? "" : `[${name}]: ${linkTo(href)}`))
      .replace(links, (_, image, title, href) => {
        const to = linkTo(href);
        return to === undefined ? title : `${image}[${title}](${to})`;
      }),
  );
}

/** Blocks of code stay as they are. */
function outsideOfCode(text, change) {
  return text
    .split(/(^ *```[\s\S]*?^ *```$)/m)
    .map((part, index) => (index % 2 === 0 ? change(part) : part))
    .join("");
}

export function stage() {
  rmSync(pagesFolder, { recursive: true, force: true });
  const docs = readdirSync(join(root, "docs"), { recursive: true }).map((name) => posix.join("docs", name));
  for (const path of [...docs.filter((each) => each.endsWith(".md")), ...Object.keys(beside)]) {
    const to = join(pagesFolder, sitePath(path));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, staged(path, readFileSync(join(root, path), "utf8")));
  }
  cpSync(join(root, "packages/web/src/look/icon.svg"), join(pagesFolder, "public/icon.svg"));
  cpSync(join(root, "docs/images"), join(pagesFolder, "images"), { recursive: true });
}
