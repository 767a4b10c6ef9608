import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { settingsPage } from "./page.ts";

// `npm run docs`
writeFileSync(fileURLToPath(import.meta.resolve("../../../../docs/settings.md")), await settingsPage());
