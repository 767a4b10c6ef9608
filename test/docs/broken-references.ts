import { matchesGlob, posix } from "node:path";
import Slugger from "github-slugger";
import { lexer, type Token, walkTokens } from "marked";

export type Repository = {
  /** The paths of all files, from the root. */
  readonly paths: readonly string[];
  readonly read: (path: string) => string;
};

type Reference = {
  readonly written: string;
  readonly path: string;
  readonly anchor: string;
  /** Text about one package names files by the end of their path: `record/journal/writer.ts`. */
  readonly isTail?: boolean;
};

/** A file reference in a comment or a message: from the root, with an anchor if it is Markdown. */
const inSource =
  /(?<![\w./@-])(?:docs|infra|packages|proto|services|test)\/[\w./*-]+\.(?:css|json|md|mjs|proto|sql|tsx?|ya?ml)\b(?:#[\w-]+)?/g;
/** Files whose comments and messages are read for references. */
const isSource = /(?:\.(?:css|mjs|proto|sh|sql|tpl|tsx?|ya?ml)|Dockerfile)$/;
const rootFolder = /^(?:docs|infra|packages|proto|services|test)\//;

/**
 * Returns references in Markdown and in sources to missing files and to missing headings of Markdown, each as "where:
 * what".
 */
export function brokenReferences({ paths, read }: Repository): string[] {
  const folders = new Set(paths.flatMap(foldersAbove));
  const known = new Set(paths);
  const anchors = new Map<string, ReadonlySet<string>>();

  return paths.flatMap((path) => {
    const references = path.endsWith(".md")
      ? referencesOfMarkdown(path, read(path))
      : isSource.test(path)
        ? referencesOfSource(read(path))
        : [];
    return references.filter((reference) => !leadsSomewhere(reference)).map(({ written }) => `${path}: ${written}`);
  });

  function leadsSomewhere({ path, anchor, isTail }: Reference): boolean {
    if (path.includes("*")) return paths.some((each) => matchesGlob(each, path));
    if (isTail) return paths.some((each) => each.endsWith(`/${path}`));
    if (anchor === "") return known.has(path) || folders.has(path);
    return known.has(path) && anchorsOf(path).has(anchor);
  }

  function anchorsOf(path: string): ReadonlySet<string> {
    const found = anchors.get(path) ?? (path.endsWith(".md") ? headingAnchors(read(path)) : new Set<string>());
    anchors.set(path, found);
    return found;
  }
}

function referencesOfMarkdown(path: string, text: string): Reference[] {
  const references: Reference[] = [];
  for (const token of tokensOf(text)) {
    if (token.type === "link" || token.type === "image") {
      const reference = referenceOfLink(path, token.href);
      if (reference !== undefined) references.push(reference);
    } else if (token.type === "codespan" && isPath(token.text)) {
      references.push(referenceOfCode(token.text));
    } else if (token.type === "text" && !("tokens" in token && token.tokens)) {
      // Markdown treats a reference link without its definition as text.
      for (const [written] of token.raw.matchAll(/\[[^\]]+\]/g)) references.push({ written, path: "", anchor: "" });
    }
  }
  return references;
}

/** All tokens, including nested ones. */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  // It returns its callback's return value: nothing.
  void walkTokens(lexer(text), (token) => {
    tokens.push(token);
  });
  return tokens;
}

function referenceOfCode(code: string): Reference {
  const written = `\`${code}\``;
  if (rootFolder.test(code)) return { written, path: withoutSlash(code), anchor: "" };
  return code.includes("*")
    ? { written, path: `**/${code}`, anchor: "" }
    : { written, path: code, anchor: "", isTail: true };
}

/** Undefined for references outside the repository. */
function referenceOfLink(from: string, href: string): Reference | undefined {
  if (/^[a-z][a-z+.-]*:|^\/\//i.test(href)) return undefined;
  const [target = "", anchor = ""] = href.split("#").map(decodeURIComponent);
  const path = target === "" ? from : posix.join(posix.dirname(from), target);
  return { written: href, path: withoutSlash(path), anchor };
}

/** Names with a placeholder are not paths. */
function isPath(code: string): boolean {
  return /^[\w./*-]+$/.test(code) && (rootFolder.test(code) || /\/.*\.ts$/.test(code));
}

function referencesOfSource(text: string): Reference[] {
  return Array.from(text.matchAll(inSource), ([written]) => {
    const [path = "", anchor = ""] = written.split("#");
    return { written, path, anchor };
  });
}

/** The anchors as GitHub makes them: a repeated heading has a number at its end. */
function headingAnchors(text: string): ReadonlySet<string> {
  const slugger = new Slugger();
  const found = new Set<string>();
  for (const token of tokensOf(text)) {
    if (token.type === "heading") found.add(slugger.slug(plainText(token)));
  }
  return found;
}

function plainText(token: Token): string {
  if ("tokens" in token && token.tokens) return token.tokens.map(plainText).join("");
  return token.type === "html" || !("text" in token) ? "" : token.text;
}

function foldersAbove(path: string): string[] {
  const above = posix.dirname(path);
  return above === "." ? [above] : [above, ...foldersAbove(above)];
}

function withoutSlash(path: string): string {
  return path.replace(/\/$/, "");
}
