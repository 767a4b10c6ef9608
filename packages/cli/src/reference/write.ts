import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { pages } from "./pages.ts";

// `npm run docs`
for (const [path, text] of Object.entries(pages)) {
  writeFileSync(fileURLToPath(import.meta.resolve(`../../../../${path}`)), await text());
}
