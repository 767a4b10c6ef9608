import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { dataMark, dataVersion } from "./src/file/data.ts";

// The page of a session in a file: one document that needs nothing else, into which `tapedeck export --html` writes a session.

export default defineConfig({
  plugins: [oneDocument()],
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    // The page itself was written before.
    emptyOutDir: false,
    rolldownOptions: { input: "src/file/main.tsx", output: { codeSplitting: false } },
  },
});

function oneDocument(): Plugin {
  return {
    name: "one-document",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.entries(bundle);
      const scripts = files.flatMap(([, file]) => (file.type === "chunk" ? [file.code] : []));
      const styles = files.flatMap(([name, file]) =>
        file.type === "asset" && name.endsWith(".css") ? [`${file.source}`] : [],
      );
      const [script = "", ...others] = scripts;
      if (others.length > 0 || files.length !== scripts.length + styles.length)
        this.error(`the page of a file needs more than itself: ${files.map(([name]) => name).join(", ")}`);
      if (/<\/script|<!--/i.test(script)) this.error("the script would end early where it stands in a document");
      for (const [name] of files) delete bundle[name];
      this.emitFile({ type: "asset", fileName: "session-file.html", source: documentOf(script, styles.join("")) });
    },
  };
}

/** Scripts and styles other than these two do not run, and nothing is loaded or sent. */
function documentOf(script: string, style: string): string {
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const icon = readFileSync(new URL("src/look/icon.svg", import.meta.url), "utf8");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="tapedeck-session-data" content="${dataVersion}">
<title>Session · Tapedeck</title>
<link rel="icon" type="image/svg+xml" href="data:image/svg+xml,${encodeURIComponent(icon)}">
<style>${style}</style>
</head>
<body>
<div id="page"></div>
<noscript>This is a session that Tapedeck recorded. Its page needs JavaScript.</noscript>
<script type="text/plain" id="session-data">${dataMark}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
