import { readFile, writeFile } from "node:fs/promises";
import { shapesOf } from "./rule-shapes.ts";
import type { TokenShape } from "./token-shape.ts";

/**
 * Writes token-table.ts anew from gitleaks' rules:
 *
 *   node services/ingest/src/secrets/tokens/renew-token-table.ts <version> <gitleaks.toml, a path or an address>
 *
 * Only facts are taken: what a token begins with, of which characters it is, how long it is, near which word. Rules that
 * go by a variable's name alone are left out: names are recognized by Tapedeck's own rules.
 */
export function tokenTable(toml: string, version: string): string {
  const rules = toml.split(/^\[\[rules\]\]$/m).slice(1);
  const shapes: TokenShape[] = [];
  let left = 0;
  for (const rule of rules) {
    const id = /^id = "(.*)"$/m.exec(rule)?.[1] ?? "";
    const regex = /^regex = '''(.*)'''$/m.exec(rule)?.[1] ?? "";
    const keywords = [...(/^keywords = \[([^\]]*)\]/m.exec(rule)?.[1] ?? "").matchAll(/"([^"]+)"/g)];
    const found = shapesOf(
      id,
      regex,
      keywords.map(([, keyword = ""]) => keyword),
    );
    if (found.length === 0) left += 1;
    shapes.push(...found);
  }
  const header = [
    `// Token shapes of gitleaks ${version} (config/gitleaks.toml, https://github.com/gitleaks/gitleaks, MIT License, Copyright (c) 2019`,
    `// Zachary Rice): ${shapes.length} shapes of ${rules.length - left} rules; ${left} rules go by names or have no fixed beginning. Written by`,
    "// renew-token-table.ts: do not edit.",
  ];
  const rows = shapes.map((shape) => `  ${JSON.stringify(shape).replace(/"(id|parts|alone|near)":/g, "$1:")},`);
  return [
    ...header,
    'import type { TokenShape } from "./token-shape.ts";',
    "",
    `export const gitleaksVersion = ${JSON.stringify(version)};`,
    "",
    "// biome-ignore format: a row is a line",
    "export const tokenTable: readonly TokenShape[] = [",
    ...rows,
    "];",
    "",
  ].join("\n");
}

if (import.meta.main) {
  const [version, from] = process.argv.slice(2);
  if (version === undefined || from === undefined) {
    console.error("needs the version of gitleaks, and the path or address of its gitleaks.toml");
    process.exit(2);
  }
  const toml = /^https?:/.test(from) ? await (await fetch(from)).text() : await readFile(from, "utf8");
  await writeFile(new URL("token-table.ts", import.meta.url), tokenTable(toml, version));
}
