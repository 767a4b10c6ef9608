import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dashboardFiles } from "./files.ts";

const folder = join(import.meta.dirname, "json");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
for (const [name, text] of Object.entries(dashboardFiles())) writeFileSync(join(folder, name), text);
