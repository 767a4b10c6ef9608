import { readFileSync } from "node:fs";
import { join } from "node:path";
import { builtFolder, pagesFolder } from "../stage.mjs";

/** The columns of the first page's table are the parts of the navigation. */
function sidebar() {
  const rows = readFileSync(join(pagesFolder, "index.md"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.slice(1, -1).split(" | "));
  const [head = [], ...others] = rows;
  return head.map((text, column) => ({
    text: text.trim().replace(/^./, (letter) => letter.toUpperCase()),
    items: others.flatMap((cells) =>
      Array.from((cells[column] ?? "").matchAll(/\[([^\]]+)\]\(\.\/([^)]+)\.md\)/g), ([, title, page]) => ({
        text: title,
        link: `/${page.replace(/(^|\/)index$/, "$1")}`,
      })),
    ),
  }));
}

/** The anchors are those that GitHub makes, so that a link is right in both places. */
function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");
}

/** Vue would evaluate what stands between two braces. */
function escapeBraces(markdown) {
  for (const kind of ["code_inline", "text"]) {
    const render = markdown.renderer.rules[kind];
    markdown.renderer.rules[kind] = (...args) => render(...args).replaceAll("{{", "&#123;&#123;");
  }
}

export default {
  title: "Tapedeck",
  description: "Records what development tools do, and plays it back.",
  base: "/docs/",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/docs/icon.svg" }]],
  srcDir: pagesFolder,
  outDir: builtFolder,
  cacheDir: "node_modules/.vitepress-cache",
  metaChunk: true,
  markdown: { anchor: { slugify }, html: false, config: escapeBraces },
  themeConfig: {
    search: { provider: "local" },
    nav: [{ text: "Changelog", link: "/changelog" }],
    sidebar: sidebar(),
    outline: { level: [2, 3] },
  },
};
